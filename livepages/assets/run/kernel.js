// A kernel of a Jupyter server: its REST interface, and its messages as https://jupyter-client.readthedocs.io has them.

const PATIENCE = 60_000; // milliseconds that a server may take to answer
const SLOW = 5000; // milliseconds after which the reader sees that it does not
const LATE = 2000; // milliseconds in which a reply comes to what has ended: what is interrupted before it runs has none
const INTERRUPTED = { status: "error", ename: "KeyboardInterrupt", evalue: "interrupted before it began" };
const LOOKS = 10_000; // milliseconds between checks that it still answers, while something runs

export class Lost extends Error {}
export class Died extends Lost {} // of the kernel alone

export class Kernel {
  #address;
  #header;
  #path;
  #socket;
  #waiting = new Map(); // by the ids of requests
  #session = crypto.randomUUID();
  #report;
  #looks;

  // A new kernel of a server, which is given by its address (host and port) and its token. `report` is called with messages
  // about the server, and with true if the kernel is lost.
  static async start({ address, token }, report) {
    const kernel = new Kernel();
    kernel.address = address;
    kernel.#report = report;
    kernel.#address = `http://${address}`;
    kernel.#header = { Authorization: `token ${token}`, "Content-Type": "application/json" };
    const { id } = await (await kernel.#request("/api/kernels", "POST", "{}")).json();
    kernel.#path = `/api/kernels/${encodeURIComponent(id)}`;
    // A browser lets nobody add a header to this request, so Jupyter takes the token in its address.
    kernel.#socket = new WebSocket(`ws://${address}${kernel.#path}/channels?token=${encodeURIComponent(token)}`);
    await kernel.#awaited(
      new Promise((open, fail) => {
        kernel.#socket.onopen = open;
        kernel.#socket.onclose = () => fail(new Lost(`The Jupyter server at ${address} refused the connection.`));
        setTimeout(() => fail(new Lost(`The Jupyter server at ${address} does not answer.`)), PATIENCE);
      }),
    );
    kernel.#socket.onmessage = ({ data }) => typeof data === "string" && kernel.#take(JSON.parse(data));
    kernel.#socket.onclose = () =>
      kernel.#lose(new Lost("The connection to the Jupyter server is lost. Run starts anew."));
    return kernel;
  }

  get lives() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  // Run code; `each` is called with each message of its output; the reply comes after the last one.
  execute(code, { each = () => {}, expressions = {}, silent = false } = {}) {
    if (!this.lives) return Promise.reject(new Lost("There is no connection to a kernel."));
    const id = crypto.randomUUID();
    const header = { msg_id: id, msg_type: "execute_request", session: this.#session, username: "", version: "5.3" };
    const content = { code, silent, store_history: false, user_expressions: expressions, allow_stdin: false };
    const message = { header: { ...header, date: new Date().toISOString() }, content, channel: "shell" };
    return new Promise((done, fail) => {
      this.#waiting.set(id, { each, done, fail });
      this.#looks ??= setInterval(() => this.#look(), LOOKS);
      this.#socket.send(JSON.stringify({ ...message, parent_header: {}, metadata: {}, buffers: [] }));
    });
  }

  interrupt() {
    return this.#request(`${this.#path}/interrupt`, "POST");
  }

  // End the kernel, also while the page is left.
  async end() {
    this.#report = () => {};
    this.#lose(new Lost("The kernel has ended."));
    await this.#request(this.#path, "DELETE", undefined, true).catch(() => {}); // it ends by itself if that does not reach it
  }

  // Send the server a request: if no answer comes, the reader sees a message.
  #look() {
    if (this.#waiting.size) return this.#request("/api/status", "GET").catch(() => {});
    clearInterval(this.#looks);
    this.#looks = undefined;
  }

  // Wait for an answer of the server; report if it takes long.
  async #awaited(answer) {
    let late = false;
    const slow = setTimeout(() => {
      late = true;
      this.#report(`The Jupyter server at ${this.address} does not answer. Is it stopped, or its machine asleep?`);
    }, SLOW);
    try {
      const answered = await answer;
      if (late) this.#report(`The Jupyter server at ${this.address} answers again.`);
      return answered;
    } finally {
      clearTimeout(slow);
    }
  }

  async #request(path, method, body, keepalive = false) {
    const signal = AbortSignal.timeout(PATIENCE);
    const options = {
      method,
      body,
      keepalive,
      signal,
      headers: this.#header,
      cache: "no-store",
      referrerPolicy: "no-referrer",
    };
    const answer = await this.#awaited(fetch(this.#address + path, options)).catch(async () => {
      // Of what does not let this site in, a page may learn that it is there, and no more.
      const there = await fetch(this.#address, { mode: "no-cors", cache: "no-store", signal }).catch(() => null);
      throw new Lost(
        there
          ? `The server at ${this.#address} refuses this page: another command started it, such as that of another tab. End it.`
          : `Nothing answers at ${this.#address}.`,
      );
    });
    if (!answer.ok) {
      throw new Lost(`The Jupyter server at ${this.#address} refused: ${answer.status}, ${answer.statusText}.`);
    }
    return answer;
  }

  #take({ channel, content, msg_type: kind, parent_header: parent }) {
    if (kind === "status" && ["restarting", "autorestarting", "dead"].includes(content.execution_state)) {
      return this.#lose(new Died("The kernel has died, as the program ended its process. Run starts anew.")); // the server ends its successor
    }
    const request = this.#waiting.get(parent?.msg_id);
    if (!request) return;
    if (channel === "iopub" && kind === "status") request.idle = content.execution_state === "idle";
    else if (channel === "iopub") request.each(kind, content);
    else if (kind === "execute_reply") request.reply = content;
    if (!request.idle) return;
    const end = () => this.#waiting.delete(parent.msg_id) && request.done(request.reply ?? INTERRUPTED);
    if (request.reply) end();
    else setTimeout(end, LATE);
  }

  #lose(why) {
    clearInterval(this.#looks);
    if (this.#socket) this.#socket.onclose = this.#socket.onmessage = null;
    this.#socket?.close();
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { fail } of waiting) fail(why);
    this.#report(why.message, true);
  }
}
