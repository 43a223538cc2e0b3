// A cell of the page's notebook: its code, and what is published of it.
import { tally } from "./exercises.js";

export class Cell {
  constructor({ source, metadata, outputs }, index) {
    this.index = index;
    this.live = metadata.live;
    this.source = [source].flat().join("");
    this.published = { stdout: "", stderr: "", error: "", figures: 0, shown: "" };
    this.words = ""; // what its first figure shows
    for (const output of outputs) {
      if (output.output_type === "stream") this.published[output.name] += [output.text].flat().join("");
      else if (output.output_type === "error") this.published.error = `${output.ename}: ${output.evalue}`;
      else if (output.output_type === "execute_result") {
        this.published.shown += [output.data["text/plain"]].flat().join("");
      } else {
        this.published.figures += 1;
        this.words ||= [output.data["text/plain"]].flat().join("");
      }
    }
  }

  get code() {
    return this.judged ?? this.block?.code ?? this.source;
  }

  judged; // the code that is judged, whatever its reader writes meanwhile

  // The name of its file in the kernel, which errors and warnings name: its lines are those that a reader sees.
  get file() {
    return `${this.block?.run ? this.block.name.replace(" ", "-") : `hidden-${this.index}`}.py`;
  }

  get edited() {
    return this.code !== this.source;
  }
}

// A summary of a block that has run, and whether its output equals the published one.
export const summary = (cell, report, edited) => {
  if (!report) return [""];
  const where = [report.device, report.release, time(report.seconds)].filter(Boolean).join(", ");
  const edits = edited ? " after your edits above" : "";
  const sentence = report.skipped
    ? ""
    : cell.block?.scores
    ? ` ${tally(cell.block.page.exercises)} in this browser.`
    : cell.edited
    ? " Edited."
    : !report.compared
    ? ""
    : report.difference
    ? ` Not what is published${edits}: ${report.difference.split("\n")[0].replace(/:$/, "")}.`
    : cell.live.volatile
    ? " It ended as published; what it says differs from run to run."
    : ` Equal to the published output${edits}.`;
  return [
    `Yours: ${where}.${sentence}`,
    report.compared && !cell.edited && !cell.block?.scores ? !report.difference : "",
  ];
};

const time = (seconds) => (seconds >= 0.1 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds * 1e3)} ms`);
