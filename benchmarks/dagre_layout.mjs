// Times dagre's layout of the graphs that cfg_layout.py exports, one thread, no drawing.
//
//     python benchmarks/cfg_layout.py BINARY:FUNCTION... --export graphs
//     npm install --no-save @dagrejs/dagre
//     node benchmarks/dagre_layout.mjs graphs/*.json [--json] [--limit SECONDS] [--repeats N]
//         [--ranker network-simplex|tight-tree|longest-path]
//
// dagre is looked for from the current folder. A file has {"target", "sizes": [[width, height],
// ...], "edges": [[source, target], ...]}; boxes are as far apart as on the comparison page. The
// fastest of the repeats counts, by the clock and in CPU seconds of the process, its collector of
// garbage included. Layouts of one file that take longer than the limit are ended.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { parseArgs } from "node:util";
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";

const SPACING = { nodesep: 28, edgesep: 14, ranksep: 36 };

function layOut({ path, ranker, repeats }) {
  const require = createRequire(`${process.cwd()}/`);
  const dagre = require("@dagrejs/dagre");
  const { sizes, edges } = JSON.parse(readFileSync(path, "utf8"));
  const clock = [],
    cpu = [];
  for (let run = 0; run < repeats; run++) {
    const graph = new dagre.graphlib.Graph();
    graph.setGraph({ ranker, ...SPACING });
    sizes.forEach(([width, height], box) => graph.setNode(String(box), { width, height }));
    for (const [source, target] of edges) graph.setEdge(String(source), String(target), {});
    const began = performance.now(),
      usage = process.cpuUsage();
    dagre.layout(graph);
    const { user, system } = process.cpuUsage(usage);
    clock.push((performance.now() - began) / 1e3);
    cpu.push((user + system) / 1e6);
  }
  return { seconds: Math.min(...clock), cpu_seconds: Math.min(...cpu) };
}

// Seconds, or why there is no layout.
function timed(options, limit) {
  return new Promise((resolve) => {
    const worker = new Worker(new URL(import.meta.url), {
      workerData: options,
      resourceLimits: { maxOldGenerationSizeMb: 4096, stackSizeMb: 64 },
    });
    const clock = setTimeout(() => {
      worker.terminate();
      resolve({ error: `ended after ${limit} s` });
    }, limit * 1000);
    worker.on("message", resolve);
    worker.on("error", (error) => resolve({ error: error.message }));
    worker.on("exit", () => clearTimeout(clock));
  });
}

function lineOf({ target, blocks, edges, error, seconds, cpu_seconds }) {
  const start = target.slice(-43).padEnd(44) + `${blocks}`.padStart(7) + `${edges}`.padStart(7);
  const found = error ?? `${seconds.toFixed(3)} s, ${cpu_seconds.toFixed(3)} s of CPU`;
  return `${start}  ${found}`;
}

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      json: { type: "boolean", default: false },
      limit: { type: "string", default: "60" },
      repeats: { type: "string", default: "1" },
      ranker: { type: "string", default: "network-simplex" },
    },
  });
  const rows = [];
  for (const path of positionals) {
    const { target, sizes, edges } = JSON.parse(readFileSync(path, "utf8"));
    const options = { path, ranker: values.ranker, repeats: Number(values.repeats) };
    const found = await timed(options, Number(values.limit));
    const row = { target, blocks: sizes.length, edges: edges.length, ...options, ...found };
    rows.push(row);
    if (!values.json) console.log(lineOf(row));
  }
  if (values.json) console.log(JSON.stringify(rows, null, 2));
}

if (isMainThread) await main();
else parentPort.postMessage(layOut(workerData));
