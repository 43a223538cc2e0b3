// A kernel of a Jupyter server: its REST interface, and its messages as https://jupyter-client.readthedocs.io has them.

const PATIENCE = 60_000; // milliseconds that a server may take to answer

export class Lost extends Error {}

export class Kernel {
  #address;
  #header;
  #path;
  #socket;
  #waiting = new Map(); // by the ids of requests
  #session = crypto.randomUUID();

  // A new kernel of a server, which is given by its address (host and port) and its token.
  static async start({ address, token }) {
    const kernel = new Kernel();
    kernel.address = address;
    kernel.#address = `http://${address}`;
    kernel.#header = { Authorization: `token ${token}`, "Content-Type": "application/json" };
    const { id } = await (await kernel.#ask("/api/kernels", "POST", "{}")).json();
    kernel.#path = `/api/kernels/${encodeURIComponent(id)}`;
    // A browser lets nobody add a header to this request, so Jupyter takes the token in its address.
    kernel.#socket = new WebSocket(`ws://${address}${kernel.#path}/channels?token=${encodeURIComponent(token)}`);
    await new Promise((open, fail) => {
      kernel.#socket.onopen = open;
      kernel.#socket.onclose = () => fail(new Lost(`The Jupyter server at ${address} refused the connection.`));
      setTimeout(() => fail(new Lost(`The Jupyter server at ${address} does not answer.`)), PATIENCE);
    });
    kernel.#socket.onmessage = ({ data }) => typeof data === "string" && kernel.#take(JSON.parse(data));
    kernel.#socket.onclose = () => kernel.#lose("The connection to the Jupyter server is lost. Run starts anew.");
    return kernel;
  }

  get lives() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  // Run code; `each` gets what it says, as messages; the reply comes when all of that has come.
  execute(code, { each = () => {}, expressions = {}, silent = false } = {}) {
    if (!this.lives) return Promise.reject(new Lost("There is no connection to a kernel."));
    const id = crypto.randomUUID();
    const header = { msg_id: id, msg_type: "execute_request", session: this.#session, username: "", version: "5.3" };
    const content = { code, silent, store_history: false, user_expressions: expressions, allow_stdin: false };
    const message = { header: { ...header, date: new Date().toISOString() }, content, channel: "shell" };
    return new Promise((done, fail) => {
      this.#waiting.set(id, { each, done, fail });
      this.#socket.send(JSON.stringify({ ...message, parent_header: {}, metadata: {}, buffers: [] }));
    });
  }

  interrupt() {
    return this.#ask(`${this.#path}/interrupt`, "POST");
  }

  // End the kernel, also while the page is left.
  async end() {
    this.#lose("The kernel has ended.");
    await this.#ask(this.#path, "DELETE", undefined, true).catch(() => {}); // it ends by itself if that does not reach it
  }

  async #ask(path, method, body, keepalive = false) {
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
    const answer = await fetch(this.#address + path, options).catch(() => {
      throw new Lost(`Nothing answers at ${this.#address}, or it does not let this site in.`);
    });
    if (!answer.ok) {
      throw new Lost(`The Jupyter server at ${this.#address} refused: ${answer.status}, ${answer.statusText}.`);
    }
    return answer;
  }

  #take({ channel, content, msg_type: kind, parent_header: parent }) {
    if (kind === "status" && ["restarting", "autorestarting", "dead"].includes(content.execution_state)) {
      return this.#lose("The kernel has died, as the program ended its process. Run starts anew."); // the server ends its successor
    }
    const request = this.#waiting.get(parent?.msg_id);
    if (!request) return;
    if (channel === "iopub" && kind === "status") request.idle = content.execution_state === "idle";
    else if (channel === "iopub") request.each(kind, content);
    else if (kind === "execute_reply") request.reply = content;
    if (!request.idle || !request.reply) return;
    this.#waiting.delete(parent.msg_id);
    request.done(request.reply);
  }

  #lose(why) {
    if (this.#socket) this.#socket.onclose = this.#socket.onmessage = null;
    this.#socket?.close();
    for (const { fail } of this.#waiting.values()) fail(new Lost(why));
    this.#waiting.clear();
  }
}
