// Run Lighthouse on each address that comes in as a line, and print its result as a line of JSON. One process for all
// pages, since a cold one uses three times the processor time; a fresh browser for each, as for a first visit.

import { createInterface } from "node:readline";
import { launch } from "chrome-launcher";
import lighthouse from "lighthouse";

for await (const address of createInterface({ input: process.stdin })) {
  const chrome = await launch({ chromeFlags: process.argv.slice(2) });
  const options = { port: chrome.port, disableFullPageScreenshot: true, logLevel: "silent" };
  const failed = ({ message }) => ({ lhr: { runtimeError: { message } } });
  const { lhr } = await lighthouse(address, options).catch(failed);
  chrome.kill();
  console.log(JSON.stringify(lhr));
}
