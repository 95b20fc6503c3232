
// What a timeline shows: lanes with bars, and steps for its table. A bar is `from`, `until`, `tone`,
// `tip`, `offset`, `next` (the offset of the step after it) and `high`.

const MOST_LANES = 12;
const MOST_PARTITIONS = 60;

function summed(differences) {
  let sum = 0;
  return differences.map((each) => { sum += each; return sum; });
}

function lasted(ms) {
  if (ms < 1000) return `${ms} ms`;
  const units = [["d", 864e5], ["h", 36e5], ["min", 6e4], ["s", 1e3]];
  const place = units.findIndex(([, unit]) => ms >= unit);
  const said = units.slice(place, place + 2).map(([name, unit], n) => {
    const whole = Math.floor(n ? (ms % units[place][1]) / unit : ms / unit);
    return whole || !n ? `${whole} ${name}` : "";
  });
  return said.filter(Boolean).join(" ");
}

// Return the steps of a partition, each with its state.
function steps(line, data) {
  const [, , times, offsets, states, lasts] = line;
  const at = summed(times);
  const offset = summed(offsets);
  return states.map((state, place) => {
    const [leader, isr, replicas, minIsr] = data.states[state];
    return {
      from: at[place], until: at[place + 1], offset: offset[place], next: offset[place + 1],
      leader, isr, replicas, minIsr, offline: leader < 0, under: isr.length < minIsr,
      lasts: lasts === 1 && place + 1 === states.length,
    };
  });
}

// Join neighbouring steps for which `told` returns the same tone; null leaves a step out.
function bars(all, name, told) {
  const made = [];
  for (const step of all) {
    const found = told(step);
    const last = made.at(-1);
    if (!found) continue;
    if (last && last.until === step.from && last.words === found.words) {
      last.until = step.until;
      last.next = step.next;
    } else made.push({ ...found, from: step.from, until: step.until, offset: step.offset, next: step.next });
  }
  for (const bar of made) {
    bar.tip = `${name}: ${bar.words}, ${lasted(bar.until - bar.from)}, ${moment(bar.from)} to ${moment(bar.until)}`;
  }
  return made;
}

function ofPartition(line, data) {
  const all = steps(line, data);
  const times = new Map();
  for (const step of all) {
    for (const id of new Set([...step.replicas, ...step.isr])) {
      times.set(id, (times.get(id) ?? 0) + step.until - step.from + 1);
    }
  }
  const ids = [...times.keys()].sort((a, b) => times.get(b) - times.get(a)).slice(0, MOST_LANES);
  const lanes = ids.sort((a, b) => a - b).map((id) => ({
    name: `broker ${id}`,
    bars: bars(all, `broker ${id}`, (step) => {
      if (step.leader === id) return { tone: "lead", words: "leads" };
      if (step.isr.includes(id)) return { tone: "in-sync", words: "in sync" };
      return step.replicas.includes(id) ? { tone: "warn", words: "not in sync", high: 0.35 } : null;
    }),
  }));
  const bad = [
    ["no leader", "bad", (step) => step.offline],
    ["under min ISR", "warn", (step) => step.under],
  ];
  for (const [name, tone, is] of bad) {
    const found = bars(all, line[0], (step) => (is(step) ? { tone, words: name } : null));
    if (found.length) lanes.push({ name, bars: found });
  }
  const worst = all.filter((step) => step.offline).sort((a, b) => (b.until - b.from) - (a.until - a.from))[0];
  const key = [["leads", "lead"], ["in sync", "in-sync"], ["not in sync: a low bar", "warn"], ["no leader, or under min ISR: in a lane of its own", "bad"]];
  return { lanes, key, steps: all, worst, left: times.size - ids.length, leftNoun: "brokers that had it for less time" };
}

function ofTopic(name, data) {
  const lines = data.lines.filter((line) => line[1] === name);
  const shown = lines.slice(0, MOST_PARTITIONS).sort((a, b) => a[0].localeCompare(b[0], "en", { numeric: true }));
  const lanes = shown.map((line) => ({
    name: line[0],
    thing: line,
    bars: bars(steps(line, data), line[0], (step) => {
      if (step.offline) return { tone: "bad", words: "no leader" };
      if (step.under) return { tone: "warn", words: "under min ISR", high: 0.5 };
      return { tone: "in-sync", words: `led by ${step.leader}`, high: 0.2 };
    }),
  }));
  const key = [["has a leader: a low bar", "in-sync"], ["under min ISR: a half bar", "warn"], ["no leader: a high bar", "bad"]];
  return { lanes, key, steps: [], worst: null, left: lines.length - shown.length, leftNoun: "partitions that changed less" };
}

function ofBroker(id, data) {
  const [, found] = data.brokers.find(([each]) => each === id);
  const all = found.map(([from, until, state, offset], place) => ({ from, until, state, offset, next: found[place + 1]?.[3] }));
  const tones = {
    online: { tone: "present", words: "in service" },
    stopping: { tone: "warn", words: "stopping", high: 0.5 },
    fenced: { tone: "bad", words: "fenced" },
  };
  const lanes = [{ name: `broker ${id}`, bars: bars(all, `broker ${id}`, (step) => tones[step.state]) }];
  const led = [];
  for (const line of data.lines) {
    const its = bars(steps(line, data), line[0], (step) => (step.leader === id ? { tone: "lead", words: `led by ${id}` } : null));
    if (its.length) led.push({ name: line[0], thing: line, bars: its });
  }
  lanes.push(...led.slice(0, MOST_LANES));
  const key = [["in service", "present"], ["stopping: a half bar", "warn"], ["fenced", "bad"], ["leads this partition", "lead"]];
  const worst = all.filter((step) => step.state === "fenced").sort((a, b) => (b.until - b.from) - (a.until - a.from))[0];
  return { lanes, key, steps: all, worst, left: Math.max(0, led.length - MOST_LANES), leftNoun: "other partitions that it led" };
}
