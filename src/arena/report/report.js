"use strict";
/* Draws the page from the JSON in #data. Text goes in as text, never as markup. */

const run = JSON.parse(document.getElementById("data").textContent);
const profiles = JSON.parse(document.getElementById("profiles").textContent);
const page = document.getElementById("page");
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/* ---- elements -------------------------------------------------------------------------------------------------- */

/* What is not seen, or turns what stands beside it around, is spelt out. */
const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
const shown = (text) => text.replace(unseen, (found) => `\\u{${found.codePointAt(0).toString(16)}}`);

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
  node.append(...children.filter((child) => child !== null && child !== undefined)
    .map((child) => (child instanceof Node ? child : shown(String(child)))));
  return node;
}

/* columns: [{title, number}], rows: arrays of text or nodes. */
function table(columns, rows, stack) {
  const cell = (tag, content, column) => {
    const node = el(tag, column.number ? { class: "number" } : {}, content);
    if (tag === "td") node.dataset.label = column.title;
    return node;
  };
  return el("div", { class: "scroll" },
    el("table", stack ? { class: "stack" } : {},
      el("thead", {}, el("tr", {}, ...columns.map((column) => cell("th", column.title, column)))),
      el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((content, i) => cell("td", content, columns[i])))))));
}

function definitions(pairs) {
  return el("dl", {}, ...pairs.filter(([, value]) => value !== "" && value !== undefined && value !== null)
    .flatMap(([term, value]) => [el("dt", {}, term), el("dd", {}, value instanceof Node ? value : String(value))]));
}

function badge(text) {
  const kinds = {
    accepted: "good", passed: "good", faster: "good", rejected: "bad", failed: "bad", slower: "bad",
    "within noise": "open", "not judged": "open", "too noisy to say": "open",
  };
  const kind = kinds[text] || (text.startsWith("accepted") ? "good" : text.startsWith("failed") ? "bad" : "plain");
  return el("span", { class: "badge " + kind }, text);
}

/* A name that may be broken after its punctuation. */
function breakable(name) {
  return el("span", {}, ...name.split(/(?<=[/,[*>])/).flatMap((part) => [part, el("wbr")]));
}

/* ---- numbers --------------------------------------------------------------------------------------------------- */

function time(us) {
  if (us >= 1e6) return (us / 1e6).toFixed(2) + " s";
  if (us >= 1e3) return (us / 1e3).toPrecision(us >= 1e5 ? 4 : 3) + " ms";
  return us.toPrecision(3) + " µs";
}

const factor = (value) => value.toFixed(3) + "×";
const interval = (estimate) => `${factor(estimate.value)} [${estimate.low.toFixed(3)}, ${estimate.high.toFixed(3)}]`;
const short = (value) => Number.isInteger(value) ? value.toLocaleString("en") : Number(value.toPrecision(4)).toString();

function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (count >= 1024 && unit < units.length - 1) { count /= 1024; unit += 1; }
  return Number(count.toPrecision(3)) + " " + units[unit];
}

/* ---- what the entries say -------------------------------------------------------------------------------------- */

const measured = (entry) => entry.measurements.filter((m) => m.rounds > 0);
/* A suite that is timed warm alone has no cold times to show. */
const headlineOf = (entry) => {
  const modes = measured(entry).map((m) => m.mode);
  return modes.includes("warm burst") && !modes.includes("cold burst") ? "warm burst" : "cold burst";
};
const unique = (items) => [...new Set(items)];
const gateOf = (entry, name) => entry.gates.find((gate) => gate.gate === name);

function score(entry, mode) {
  const verdict = gateOf(entry, "verdict");
  const found = verdict && verdict.evidence[mode];
  return found ? { value: found.geomean_speedup, low: found.low, high: found.high, noise: found.noise } : null;
}

function standing(entry) {
  if (entry.verdict === "baseline") return 1;
  const found = score(entry, headlineOf(entry));
  return found ? found.value : -1;
}

/* Of a merged run: what each shard's machine held. A name alone does not tell machines apart, and neither does a model. */
const shards = run.arguments.merged ? run.arguments.merged.shards : [];
const shardOf = (entry) => shards.find((shard) => shard.entries.includes(entry.ordinal));
const machineOf = ({ machine }) => `${machine.name || "a machine without a name"} (${machine.gpu || machine.cpu})`;

/* A contestant may stand in a suite several times, challenging several baselines. */
const nameIn = (entry, entries) =>
  (entries.filter((other) => other.contestant === entry.contestant).length > 1 && !entry.is_baseline
    ? `${entry.contestant} over ${entry.baseline}` : entry.contestant) +
  (shardOf(entry) ? ` (shard ${shardOf(entry).shard})` : "");

/* A contestant has one colour on the whole page; those of one operation, which meet in a suite, have different ones. */
const series = 10;
const colours = new Map();
for (const entry of [...run.entries].sort((a, b) => b.is_baseline - a.is_baseline)) {
  const operation = entry.contestant.split("/")[0] + "/";
  const before = [...colours.keys()].filter((contestant) => contestant.startsWith(operation));
  if (!colours.has(entry.contestant)) colours.set(entry.contestant, `--series-${before.length % series}`);
}
const swatch = (colour) => el("i", { class: "swatch", style: `background:var(${colour})` });

/* ---- charts ---------------------------------------------------------------------------------------------------- */

const charts = [];

/* Vertical lines and intervals over horizontal bars. lines: [{at, dashed}], intervals: [{low, high}] by bar. */
const marks = {
  id: "marks",
  afterDatasetsDraw(chart, _, options) {
    const { ctx, chartArea: area, scales: { x } } = chart;
    ctx.save();
    ctx.strokeStyle = css("--ink");
    for (const line of options.lines || []) {
      const at = x.getPixelForValue(line.at);
      ctx.lineWidth = 2;
      ctx.setLineDash(line.dashed ? [5, 4] : []);
      ctx.beginPath();
      ctx.moveTo(at, area.top);
      ctx.lineTo(at, area.bottom);
      ctx.stroke();
    }
    ctx.setLineDash([]);
    ctx.lineWidth = 1.5;
    (options.intervals || []).forEach((range, i) => {
      const bar = chart.getDatasetMeta(0).data[i];
      if (!bar || !range) return;
      const [low, high] = [x.getPixelForValue(range.low), x.getPixelForValue(range.high)];
      ctx.beginPath();
      ctx.moveTo(low, bar.y); ctx.lineTo(high, bar.y);
      ctx.moveTo(low, bar.y - 4); ctx.lineTo(low, bar.y + 4);
      ctx.moveTo(high, bar.y - 4); ctx.lineTo(high, bar.y + 4);
      ctx.stroke();
    });
    ctx.restore();
  },
};

function barChart(labels, values, colours, options) {
  const canvas = el("canvas", { role: "img", "aria-label": options.description });
  const box = el("div", { class: "chart", style: `height:${52 + 34 * labels.length}px` }, canvas);
  charts.push(() => new Chart(canvas, {
    type: "bar",
    data: { labels, datasets: [{ data: values, backgroundColor: colours.map(css), barThickness: 18, borderRadius: 3,
                                 minBarLength: 2 }] },
    options: {
      indexAxis: "y", animation: false, responsive: true, maintainAspectRatio: false,
      layout: { padding: { right: 12 } },
      plugins: { legend: { display: false }, tooltip: { callbacks: { label: (item) => options.tooltip(item.dataIndex) } },
                 marks: { lines: options.lines, intervals: options.intervals } },
      scales: {
        x: { beginAtZero: options.fromZero, min: options.min, suggestedMax: options.max,
             ticks: { color: css("--muted"), maxTicksLimit: 5, maxRotation: 0, callback: options.tick },
             grid: { color: css("--line") } },
        y: { ticks: { color: css("--ink"), display: options.names, crossAlign: "far", autoSkip: false,
                      callback(value) { return wrapped(this.getLabelForValue(value), innerWidth < 640 ? 14 : 40); } },
             grid: { display: false } },
      },
    },
    plugins: [marks],
  }));
  return box;
}

/* Text as lines of at most so many characters, as a chart takes them. */
function wrapped(text, length) {
  const lines = [""];
  for (const word of text.split(" ")) {
    if (lines.at(-1) && lines.at(-1).length + word.length >= length) lines.push("");
    lines[lines.length - 1] += (lines.at(-1) ? " " : "") + word;
  }
  return lines;
}

function drawCharts() {
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  for (const existing of Object.values(Chart.instances)) existing.destroy();
  for (const draw of charts) draw();
}

/* ---- sections -------------------------------------------------------------------------------------------------- */

function header() {
  const machine = run.context.machine;
  const names = run.arguments.suites.map((suite) => suite.name).join(", ");
  const state = run.ended ? "" : " — unfinished";
  return el("header", {},
    el("h1", {}, "Thresher tournament" + state),
    el("p", { class: "muted" },
      `${names}: run ${run.run}, ${run.started.replace("T", " ").replace("Z", " UTC")}, ` +
      (shards.length ? `merged from ${shards.length} shard${shards.length === 1 ? "" : "s"}` : `on ${machine.cpu || run.device}`) +
      `, seed ${run.seed}, sources ${run.context.source_hash}`),
    part());
}

/* What part of a tournament this is; nothing for the whole of it on one machine. */
function part() {
  const { shard, merged } = run.arguments;
  if (shard) return el("p", { class: "open" }, `Shard ${shard.number} of ${shard.count} of a tournament.`);
  if (!merged) return null;
  return el("p", merged.missing.length ? { class: "open" } : { class: "muted" },
    "Each shard was held on one machine. Speed-ups are of one machine, that of the shard behind the name; times of different shards may be of different ones." +
    (merged.missing.length ? ` Missing: ${merged.missing.map((number) => `shard ${number}`).join(", ")}.` : ""));
}

function standingsTable(entries) {
  const modes = unique(entries.flatMap((entry) => Object.keys((gateOf(entry, "verdict") || { evidence: {} }).evidence)));
  const columns = [{ title: "contestant" }, { title: "verdict" }, ...modes.map((mode) => ({ title: mode, number: true })),
    ...(modes.length ? [{ title: "noise", number: true }] : []), { title: "first gate not passed" }];
  const rows = entries.map((entry) => {
    const open = ["failed", "not judged"].map((outcome) => entry.gates.find((gate) => gate.outcome === outcome)).find(Boolean);
    const scores = modes.map((mode) => score(entry, mode));
    return [breakable(nameIn(entry, entries)), badge(entry.verdict_text || entry.verdict),
      ...scores.map((found) => found ? interval(found) : entry.verdict === "baseline" ? "1" : "–"),
      ...(modes.length ? [scores[0] ? factor(scores[0].noise) : "–"] : []),
      open ? `${open.gate}: ${open.outcome}` : "none"];
  });
  return el("div", { class: "card" }, table(columns, rows, true));
}

function problemChart(problem, entries, mode) {
  const bars = entries.map((entry) => ({ entry, m: measured(entry).find((m) => m.problem === problem && m.mode === mode) }))
    .filter((bar) => bar.m);
  if (!bars.length) return null;
  const lines = [  // several where machines differ
    ...unique(bars.map((bar) => bar.m.floor_us)).filter((us) => us > 0).map((at) => ({ at })),
    ...unique(bars.map((bar) => bar.m.sustained_us)).filter((us) => us > 0).map((at) => ({ at, dashed: true }))];
  const values = bars.map((bar) => bar.m.contestant_us.value);
  const labels = bars.map((bar) => nameIn(bar.entry, entries));
  const text = bars.map((bar, i) => `${labels[i]}: ${time(values[i])}`).join(", ");
  return el("div", { class: "card" }, el("h3", {}, problem),
    barChart(labels, values, bars.map((bar) => colours.get(bar.entry.contestant)), {
      description: `${problem}, ${mode}: ${text}`, fromZero: true, names: false, lines, tick: (us) => time(us).replace(/\.0+ /, " "),
      max: Math.max(...bars.map((bar) => bar.m.contestant_us.high)), intervals: bars.map((bar) => bar.m.contestant_us),
      tooltip: (i) => `${labels[i]}: ${time(values[i])}` }),
    el("p", { class: "small muted", style: "margin:0" }, text));
}

function times(entries) {
  const all = entries.flatMap(measured);
  if (!all.length) return null;
  const problems = unique(all.map((m) => m.problem));
  const holder = el("div", {});
  const buttons = unique(all.map((m) => m.mode)).map((mode) => {
    const button = el("button", { type: "button" }, mode);
    button.addEventListener("click", () => show(mode));
    return [mode, button];
  });
  let own = [];
  function show(mode) {
    for (const [name, button] of buttons) button.setAttribute("aria-pressed", String(name === mode));
    for (const draw of own) charts.splice(charts.indexOf(draw), 1);
    const before = charts.length;
    holder.replaceChildren(el("div", { class: "grid" },
      ...problems.map((problem) => problemChart(problem, entries, mode)).filter(Boolean)));
    own = charts.slice(before);
    if (document.readyState !== "loading" && page.contains(holder)) drawCharts();
  }
  show(buttons[0][0]);
  const baselinesFirst = [...entries].sort((a, b) => b.is_baseline - a.is_baseline);
  const legend = el("div", { class: "legend" },
    ...unique(baselinesFirst.map((entry) => entry.contestant)).map((contestant) =>
      el("span", {}, swatch(colours.get(contestant)), breakable(contestant))),
    el("span", {}, el("i", { class: "rule" }), "floor"),
    el("span", {}, el("i", { class: "rule dashed" }), "sustained line"));
  return el("section", {}, el("h3", {}, "Time of a call"), el("div", { class: "tabs" }, ...buttons.map(([, b]) => b)),
    legend, holder, notCold(all));
}

function notCold(all) {
  const why = unique(all.filter((m) => m.mode.startsWith("cold")).map((m) => m.samples.rotation.why_not_cold).filter(Boolean));
  return why.length ? el("p", { class: "small open" }, "The cold times are not cold: " + why[0] + ".") : null;
}

function claims(entries) {
  const pitched = entries.filter((entry) => entry.pitch);
  if (!pitched.length) return null;
  const rows = pitched.map((entry) => {
    const { claim } = entry.pitch;
    const found = score(entry, headlineOf(entry));
    const claimed = claim.speedup_low === claim.speedup_high ? factor(claim.speedup_low)
      : `${claim.speedup_low}–${claim.speedup_high}×`;
    const opinion = opinionOf(entry);
    const held = !found ? "not measured" : found.high < claim.speedup_low ? "less than claimed"
      : found.low > claim.speedup_high ? "more than claimed" : "as claimed, within its interval";
    return [entry.pitch.title, breakable(entry.contestant), breakable(entry.baseline), claimed, `${Math.round(claim.confidence * 100)} %`,
      opinion && opinion.predicted !== null ? range(opinion.predicted_interval) : "–", found ? interval(found) : "–", held, badge(entry.verdict_text || entry.verdict)];
  });
  const columns = ["pitch", "contestant", "over", "claimed", "confidence", "predicted", "measured", "so it is", "verdict"];
  return el("section", {}, el("h3", {}, "Claims against measurements"),
    el("div", { class: "card" }, table(columns.map((title) => ({ title })), rows, true), claimsChart(pitched)));
}

const range = ([low, high]) => `${short(Number(low.toPrecision(3)))}–${short(Number(high.toPrecision(3)))}×`;
const percent = (share) => (100 * share).toFixed(1) + " %";

/* ---- what was predicted ----------------------------------------------------------------------------------------- */

const predictionsOf = (entry) => run.predictions.filter((prediction) => prediction.ordinal === entry.ordinal);

/* The panel's, frozen before anything ran. */
function opinionOf(entry) {
  const found = predictionsOf(entry).find((prediction) => prediction.panel);
  return found && found.panel.score !== undefined ? found.panel : null;
}

function panel(entries) {
  const judged = entries.map((entry) => [entry, opinionOf(entry)]).filter(([, opinion]) => opinion)
    .sort(([, a], [, b]) => b.score - a.score);
  if (!judged.length) return null;
  const rows = judged.map(([entry, { score: total, scores, ...opinion }]) => {
    const found = score(entry, headlineOf(entry));
    return [opinion.pitch, opinion.withdrawn ? "withdrawn" : total.toFixed(2), ...["speedup", "feasibility", "risk", "evidence"]
      .map((part) => scores[part].toFixed(2)), range(opinion.claimed), opinion.predicted === null ? "–" : range(opinion.predicted_interval),
      found ? factor(found.value) : "–", opinion.reason];
  });
  const columns = [{ title: "pitch" }, ...["score", "speed-up", "feasibility", "risk", "evidence", "claimed", "predicted", "measured"]
    .map((title) => ({ title, number: true })), { title: "why" }];
  const quality = (whose, { count, sign_right, mean_log_error, covered }) => count
    ? `${whose}: on the right side of 1 in ${Math.round(100 * sign_right)} %, |log ratio| ${mean_log_error.toFixed(2)} on average, ` +
      `measured inside the interval in ${Math.round(100 * covered)} % of ${count}.` : null;
  return el("section", {}, el("h3", {}, "The panel, before anything ran"),
    el("div", { class: "card" }, table(columns, rows, true)),
    ...[quality("The panel", run.prediction_quality.panel), quality("The pitches' own claims", run.prediction_quality.claims)].filter(Boolean)
      .map((text) => el("p", { class: "small muted" }, text)));
}

/* Predicted against measured, both on logarithmic axes; right on the line. */
function predictions(entries) {
  const points = entries.flatMap((entry) => predictionsOf(entry).filter((p) => p.predicted_us !== null).flatMap((p) =>
    measured(entry).filter((m) => m.problem === p.problem && m.mode === headlineOf(entry))
      .map((m) => ({ x: m.contestant_us.value, y: p.predicted_us, name: nameIn(entry, entries), contestant: entry.contestant, problem: p.problem }))));
  if (!points.length) return null;
  const ends = points.flatMap(({ x, y }) => [x, y]);
  const [low, high] = [Math.min(...ends) / 1.3, Math.max(...ends) * 1.3];
  const canvas = el("canvas", { role: "img", "aria-label": "Predicted against measured times" });
  const line = (factorOf, dash) => ({ type: "line", data: [{ x: low, y: low * factorOf }, { x: high, y: high * factorOf }], pointRadius: 0,
    borderColor: css("--muted"), borderWidth: 1.5, borderDash: dash });
  const contestants = unique(points.map((point) => point.contestant));
  const axis = (title) => ({ type: "logarithmic", min: low, max: high, grid: { color: css("--line") },
    ticks: { color: css("--muted"), maxTicksLimit: 5, maxRotation: 0, callback: (us) => time(us).replace(/\.0+ /, " ") },
    title: { display: true, text: title, color: css("--muted") } });
  charts.push(() => new Chart(canvas, {
    type: "scatter",
    data: { datasets: [...contestants.map((contestant) => ({ data: points.filter((point) => point.contestant === contestant), pointRadius: 5,
      backgroundColor: css(colours.get(contestant)) })), line(1, []), line(1.15, [4, 4]), line(1 / 1.15, [4, 4])] },
    options: { animation: false, responsive: true, maintainAspectRatio: false,
      plugins: { legend: { display: false }, tooltip: { filter: (item) => item.raw.contestant !== undefined, callbacks: { label: ({ raw }) =>
        `${raw.name} on ${raw.problem}: ${time(raw.y)} predicted, ${time(raw.x)} measured` } } },
      scales: { x: axis("measured, " + headlineOf(entries[0])), y: axis("predicted") } },
  }));
  const { median_error: error, times: count, shapes, best_within_10_percent: best, unseen } = run.prediction_quality;
  return el("section", {}, el("h3", {}, "Predicted against measured"),
    el("div", { class: "card" }, el("div", { class: "chart", style: "height:340px" }, canvas),
      el("div", { class: "legend" }, ...contestants.map((contestant) =>
        el("span", {}, swatch(colours.get(contestant)), breakable(contestant))))),
    el("p", { class: "small muted" }, `Predictions were written into the ledger before anything was timed. Over this run: median error ` +
      `${percent(error)} of ${count} times; the predicted best within 10 % of the measured best on ${best} of ${shapes} shapes. ` +
      (unseen && unseen.times < count ? `On problems that the calibration never timed: ${percent(unseen.median_error)} of ${unseen.times} times. ` : "") +
      "Dashed: 15 % off."));
}

/* Two bars for each pitch: what it claimed, and the interval that was measured. */
function claimsChart(pitched) {
  const drawn = pitched.filter((entry) => score(entry, headlineOf(entry)));
  if (!drawn.length) return null;
  const around = (low, high) => low === high ? [low * .997, high * 1.003] : [low, high];
  const values = drawn.flatMap((entry) => {
    const found = score(entry, headlineOf(entry));
    return [around(entry.pitch.claim.speedup_low, entry.pitch.claim.speedup_high), around(found.low, found.high)];
  });
  const ends = [...values.flat(), 1];
  return el("div", {},
    el("div", { class: "legend", style: "margin-top:1rem" },
      el("span", {}, swatch("--line"), "claimed"),
      el("span", {}, ...unique(drawn.map((entry) => colours.get(entry.contestant))).map(swatch), "measured, " + headlineOf(drawn[0])),
      el("span", {}, el("i", { class: "rule" }), "the baseline")),
    barChart(drawn.flatMap((entry) => [entry.pitch.title, ""]), values, drawn.flatMap((entry) => ["--line", colours.get(entry.contestant)]), {
      description: "Claimed and measured speed-ups", fromZero: false, names: true, lines: [{ at: 1 }],
      min: Math.max(0, Math.floor(10 * Math.min(...ends) - .5) / 10), max: Math.ceil(10 * Math.max(...ends) + .5) / 10,
      tick: (value) => short(value) + "×", tooltip: (i) => `${values[i][0].toFixed(3)} to ${values[i][1].toFixed(3)}×` }));
}

/* ---- profiles -------------------------------------------------------------------------------------------------- */

const segmentColours = new Map([["start-up", "--series-0"], ["first loads", "--series-5"], ["main loop", "--series-2"],
  ["exchange", "--series-4"], ["epilogue", "--series-1"], ["loads", "--series-3"]]);

function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

/* One row for each role, from the start of its block. */
function roleRows({ roles }) {
  const end = Math.max(...roles.flatMap((role) => role.segments.map((segment) => segment.end_us)));
  return roles.map(({ role, segments }) => el("div", { class: "role" }, el("span", { class: "small" }, role),
    svg("svg", { viewBox: `0 0 ${end} 1`, preserveAspectRatio: "none", role: "img", "aria-label":
        `${role}: ` + segments.map((s) => `${s.name} ${(s.end_us - s.begin_us).toFixed(2)} µs`).join(", ") },
      ...segments.map((segment) => svg("rect", { x: segment.begin_us, width: segment.end_us - segment.begin_us, y: 0, height: 1,
        style: `fill:var(${segmentColours.get(segment.name)})` }, svg("title", {}, `${segment.name} ${(segment.end_us - segment.begin_us).toFixed(2)} µs`))))));
}

/* One line for each block, from its start to its end. */
function blockRows({ blocks_us: blocks, span_us: span }) {
  return svg("svg", { class: "blocks", viewBox: `0 0 ${span} ${blocks.length}`, preserveAspectRatio: "none", role: "img",
      "aria-label": `${blocks.length} blocks over ${span.toFixed(1)} µs` },
    ...blocks.map(([begin, end], i) => svg("rect", { x: begin, width: end - begin, y: i, height: 1, style: "fill:var(--series-2)" })));
}

function profileCard(profile) {
  const { timeline, parts } = profile;
  const names = unique(timeline.roles.flatMap((role) => role.segments.map((segment) => segment.name)));
  const lengths = timeline.roles.map((role) => [role.role, ...names.map((name) => {
    const found = role.segments.find((segment) => segment.name === name);
    return found ? (found.end_us - found.begin_us).toFixed(2) : "–";
  })]);
  return el("div", { class: "card profile", style: "margin-top:1rem" },
    el("h3", { style: "margin:0 0 .3rem" }, breakable(`${profile.contestant} on ${profile.problem}`)),
    el("p", { class: "small muted" }, `${profile.machine}: ${time(profile.us)} a call with cold inputs; ${timeline.blocks_us.length} blocks ` +
      `for ${timeline.span_us.toFixed(1)} µs at ${timeline.clock_ghz.toFixed(2)} GHz. The median block's roles:`),
    ...roleRows(timeline),
    el("div", { class: "legend" }, ...names.map((name) =>
      el("span", {}, swatch(segmentColours.get(name)), name))),
    table([{ title: "µs" }, ...names.map((title) => ({ title, number: true }))], lengths, true),
    el("p", { class: "small muted", style: "margin-top:1rem" }, "Every block from its start to its end:"), blockRows(timeline),
    table([{ title: "part" }, { title: "variant" }, { title: "a call", number: true }, { title: "says" }],
      parts.map((part) => [part.part, part.variant, time(part.us), (part.variant === "left out" ? "could give back at most " : "costs again ") +
        `${percent(part.share.value)} [${percent(part.share.low)}, ${percent(part.share.high)}]`]), true));
}

function profileSection() {
  if (!profiles.length) return null;
  return el("section", {}, el("h2", {}, "Where the time goes"),
    el("p", { class: "muted small" }, "From timestamps inside the kernel, and from the same kernel with a part left out or done twice."),
    ...profiles.map(profileCard));
}

/* Evidence of any gate: objects as definitions, lists of objects as tables. */
function evidence(value) {
  if (value === null || typeof value !== "object") return typeof value === "number" ? short(value) : String(value);
  if (Array.isArray(value)) {
    if (!value.length) return "none";
    if (value.every((item) => item && typeof item === "object" && !Array.isArray(item))) return evidenceTable(value);
    return value.map((item) => typeof item === "object" ? JSON.stringify(item) : evidence(item)).join(", ");
  }
  return definitions(Object.entries(value).map(([key, item]) => [key.replaceAll("_", " "), evidence(item)]));
}

function flat(object, prefix = "") {
  return Object.entries(object).flatMap(([key, value]) => {
    const name = (prefix ? prefix + " " : "") + key.replaceAll("_", " ");
    return value && typeof value === "object" && !Array.isArray(value) ? flat(value, name) : [[name, value]];
  });
}

function evidenceTable(items) {
  const rows = items.map((item) => new Map(flat(item)));
  const keys = unique(rows.flatMap((row) => [...row.keys()]));
  return table(keys.map((title) => ({ title })), rows.map((row) => keys.map((key) => row.has(key) ? evidence(row.get(key)) : "")));
}

function gates(entries) {
  const card = (entry) => el("div", { class: "card", style: "margin-top:1rem" },
    el("h3", { style: "margin:0 0 .6rem" }, breakable(nameIn(entry, entries)), " ", badge(entry.verdict_text || entry.verdict)),
    ...entry.gates.map((gate) => el("details", {},
      el("summary", {}, el("span", { class: "name" }, gate.gate), badge(gate.outcome), el("span", { class: "why" }, gate.sentence)),
      el("div", { class: "inside" }, Object.keys(gate.evidence).length ? evidence(gate.evidence)
        : el("p", { class: "small muted" }, "No evidence beyond the sentence.")))),
    measurements(entry));
  return el("section", {}, el("h3", {}, "Gates and evidence"), ...entries.map(card));
}

function measurements(entry) {
  if (!entry.measurements.length) return null;
  const columns = [{ title: "problem" }, { title: "mode" }, { title: "time", number: true }, { title: "baseline", number: true },
    { title: "speed-up, 95 %", number: true }, { title: "baseline against itself", number: true }, { title: "says" },
    { title: "rounds", number: true }, { title: "of the floor", number: true }];
  const rows = entry.measurements.map((m) => m.rounds
    ? [breakable(m.problem), m.mode, time(m.contestant_us.value), time(m.baseline_us.value), entry.is_baseline ? "–" : interval(m.speedup),
      interval(m.baseline_against_itself), entry.is_baseline ? "" : badge(m.comparison), String(m.rounds),
      m.floor_us > 0 ? Math.round(100 * m.floor_us / m.contestant_us.value) + " %" : "–"]
    : [breakable(m.problem), m.mode, "–", "–", "–", "–", "not measured: " + m.not_measured, "0", "–"]);
  return el("details", {},
    el("summary", {}, el("span", { class: "name" }, "all times"),
      el("span", { class: "why" }, `${measured(entry).length} of ${entry.measurements.length} measured; clock: ${clocks(entry)}`)),
    el("div", { class: "inside" }, table(columns, rows, true)));
}

function clocks(entry) {
  const { clock, lowest_mhz: low, highest_mhz: high, throttle_reasons: reasons } = entry.clocks;
  const range = low === undefined ? "frequency not told" : low === high ? `${Math.round(low)} MHz` : `${Math.round(low)}–${Math.round(high)} MHz`;
  return `${clock}, ${range}${reasons && reasons.length ? ", held back by " + reasons.join(", ") : ""}`;
}

function suiteSection(suite) {
  const entries = run.entries.filter((entry) => entry.suite === suite.name).sort((a, b) => standing(b) - standing(a));
  if (!entries.length) return null;
  return el("section", {}, el("h2", {}, suite.title),
    el("p", { class: "muted small" }, `suite ${suite.name}` + (suite.timed ? "" : ", correctness is judged, nothing is timed")),
    standingsTable(entries), times(entries), claims(entries), panel(entries), predictions(entries), gates(entries));
}

function machineSection() {
  const asText = (key, value) => key.endsWith("_bytes") ? bytes(value) : typeof value === "number" ? short(value) : String(value);
  const pairs = (object) => Object.entries(object).map(([key, value]) => [key.replaceAll("_", " ").replace(" bytes", ""), asText(key, value)]);
  return el("section", {}, el("h2", {}, "Machine and toolchain"),
    el("div", { class: "grid" },
      ...(shards.length
        ? shards.map((shard) => el("div", { class: "card" }, el("h3", {}, `Shard ${shard.shard}: ${machineOf(shard)}`), definitions(pairs(shard.machine))))
        : [el("div", { class: "card" }, el("h3", {}, "Machine"), definitions(pairs(run.context.machine)))]),
      el("div", { class: "card" }, el("h3", {}, "Toolchain"),
        definitions([...pairs(run.context.toolchain), ["source hash", run.context.source_hash]]))));
}

function footer() {
  return el("footer", { class: "small muted" },
    el("p", {}, "Speed-up: time of the baseline over time of the contestant, medians of rounds in which both were called in " +
      "random order, with a 95 % bootstrap interval. Noise: how far the baseline's ratio to itself leaves 1. A winner's " +
      "interval clears 1 by more than the noise."),
    el("p", {}, "Cold: input sets rotate so that more than three times the last-level cache passes before one returns. " +
      "Burst: the machine rests before each sample. Sustained: 0.25 s of back-to-back calls come first, and no rest."),
    el("p", {}, "Floor: the time below which no kernel can go, by the machine's peak rates. Sustained line: the same with the " +
      "rates measured on the day. A gate that is not judged does not count as passed."));
}

page.replaceChildren(...[header(), ...run.arguments.suites.map(suiteSection), profileSection(), machineSection(), footer()].filter(Boolean));
document.title = "Thresher: " + run.arguments.suites.map((suite) => suite.name).join(", ");
drawCharts();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawCharts);
