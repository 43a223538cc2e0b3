// How a page reaches a Jupyter server on the reader's own machine: address and token, remembered for this tab alone.
import { element } from "./output.js";
import { Kernel } from "./kernel.js";

const KEY = "live-kernels";
const root = new URL("../../../", import.meta.url);
let remembered; // where the browser keeps nothing
const recall = () => {
  try {
    return JSON.parse(sessionStorage.getItem(KEY)) ?? {};
  } catch {
    return remembered ?? {};
  }
};
const remember = (plan) => {
  remembered = plan;
  try {
    sessionStorage.setItem(KEY, JSON.stringify(plan));
  } catch {
    // it is remembered until the page is left
  }
};
const served = () => document.querySelector("meta[name=live-kernels]");

export class Off extends Error {}

// What is known of the server. A served site says where its own is.
export const known = async () => {
  if (!served()) return recall().connected ?? null;
  const answer = await fetch(new URL("live-kernels", root), { method: "POST", cache: "no-store" }).catch(() => null);
  const found = await answer?.json().catch(() => null);
  if (!found?.token) {
    throw new Off(
      found?.off ??
        "The server of this site has ended, or was started with --no-livereload. Serve the site again to run its blocks.",
    );
  }
  return found;
};

// Forget a server; its port and token stay, as the reader may start it again with the same command.
export const cut = () => {
  const { connected, ...plan } = recall();
  if (connected) remember(plan);
};

// A panel with the command that starts a server; calls `ready` with a kernel of it, and `report` with the progress.
export const panel = (install, report, ready) => {
  const plan = {
    token: btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32)))).replace(/[+/=]/g, ""),
    port: 10_000 + (crypto.getRandomValues(new Uint16Array(1))[0] % 20_000),
    ...recall(),
  };
  remember(plan);
  const command = element("code", { tabIndex: 0 });
  const status = element("p", { className: "live-note", role: "status" });
  const tool = choice("Install with", { uv: "uv", pip: "pip" });
  const device = choice("Device", {
    "": "CPU, or what is installed",
    cuda13: "NVIDIA GPU, CUDA 13",
    cuda12: "NVIDIA GPU, CUDA 12",
    tpu: "TPU",
  });
  const write = () => (command.textContent = line(plan, install, tool.value, device.value));
  tool.onchange = device.onchange = write;
  const copy = button("Copy", async () => {
    try {
      await navigator.clipboard.writeText(command.textContent);
      status.textContent = "Copied. Paste it into a terminal; when the server runs, come back and connect.";
    } catch {
      getSelection().selectAllChildren(command);
      status.textContent =
        "This browser does not let the page copy. The command is selected: copy it with the keyboard.";
    }
  });
  const connect = button("Connect", async () => {
    status.textContent = "Connecting …";
    const connected = { address: `127.0.0.1:${plan.port}`, token: plan.token };
    try {
      const kernel = await Kernel.start(connected, report);
      remember({ ...plan, connected });
      place.remove();
      ready(kernel);
    } catch (error) {
      status.textContent =
        `${error.message} Start the server with the command, and try again. If the browser asks whether this site may use your local network, allow it.`;
    }
  });
  const place = element(
    "section",
    { className: "live-panel", ariaLabel: "Run on your own machine" },
    element(
      "p",
      {},
      "Paste this into a terminal, and leave it open. It starts a Jupyter server that only your machine can reach, " +
        `and lets the pages of ${location.host} run code on it, as you, until you end it with Ctrl-C.`,
    ),
    element(
      "p",
      {},
      "It takes a computer with Python; on a phone, read on and move the sliders. Each tab of the browser has a server of " +
        "its own: links that you follow in this tab use the same one.",
    ),
    element("p", { className: "live-choices" }, tool.parentElement, " ", device.parentElement),
    element("pre", {}, command),
    element("p", {}, copy, " ", connect, " ", button("Close", () => place.remove())),
    status,
  );
  write();
  return place;
};

export const button = (label, act, properties = {}) => {
  const made = element("button", { type: "button", ...properties }, label);
  made.addEventListener("click", act);
  return made;
};

const choice = (label, options) => {
  const made = element(
    "select",
    {},
    ...Object.entries(options).map(([value, text]) => element("option", { value }, text)),
  );
  element("label", {}, `${label}: `, made);
  return made;
};

// The command. The token is in its environment, where no other user of the machine sees it.
const line = ({ token, port }, install, tool, device) => {
  const windows = /^win/i.test(navigator.platform);
  const packages = [
    "jupyter-server",
    "ipykernel",
    ...install.map((name) => (device && /^jax==/.test(name) ? name.replace("jax", `jax[${device}]`) : name)),
  ];
  const quoted = packages.map((name) => (/[[\]]/.test(name) ? `"${name}"` : name));
  const server = [
    "jupyter-server --no-browser --ServerApp.ip=127.0.0.1",
    `--ServerApp.port=${port} --ServerApp.port_retries=0`,
    `--ServerApp.allow_origin=${location.origin}`,
    "--MappingKernelManager.cull_idle_timeout=300 --MappingKernelManager.cull_interval=30 --MappingKernelManager.cull_busy=True",
  ].join(" ");
  const set = { JUPYTER_TOKEN: token, PYTHONHASHSEED: "0" }; // the second: sets print in the page's order
  const variables = Object.entries(set).map((
    [name, value],
  ) => (windows ? `$env:${name}="${value}"; ` : `${name}=${value} `)).join("");
  if (tool === "uv") {
    return `${variables}uv run --no-project ${quoted.map((name) => `--with ${name}`).join(" ")} ${server}`;
  }
  const bin = windows ? "live-jax\\Scripts\\" : "live-jax/bin/";
  const made = [`python -m venv live-jax`, `${bin}python -m pip install ${quoted.join(" ")}`];
  return windows ? [...made, variables + bin + server].join("; ") : [...made, variables + bin + server].join(" && ");
};
