// Starts Lodestar's command line from the npm modules in DEVNET_MODULES, with its mock execution engine made usable.
//
// The mock engine shipped with Lodestar 1.5.1 only says VALID to children of blocks it has seen, and it has not seen
// the genesis payload: a chain that begins after the merge would stay "syncing" for ever, and so would a restarted node.
// Here an unknown parent is taken as seen. The file named by DEVNET_ENGINE_FILE can break the engine while the node
// runs; it is read at every call: SYNCING and INVALID are answered as such, ERROR is an engine that cannot be reached.
import {readFileSync} from "node:fs";
import {sep} from "node:path";
import {pathToFileURL} from "node:url";

const modules = pathToFileURL(`${process.env.DEVNET_MODULES}${sep}node_modules${sep}`);
const load = (path) => import(new URL(path, modules));

function verdict() {
  let word = "";
  try {
    word = readFileSync(process.env.DEVNET_ENGINE_FILE ?? "", "utf8").trim().toUpperCase();
  } catch {
    return null; // no such file: the engine works
  }
  if (word === "ERROR") throw new Error("the devnet's execution engine is switched off");
  if (word === "SYNCING") return {status: word, latestValidHash: null, validationError: null};
  if (word === "INVALID") return {status: word, latestValidHash: null, validationError: "switched by the devnet"};
  return null;
}

const {ExecutionEngineMockBackend: Engine} = await load("@lodestar/beacon-node/lib/execution/engine/mock.js");
const {notifyNewPayload, notifyForkchoiceUpdate} = Engine.prototype;

function admit(engine, blockHash) {
  if (engine.validBlocks.has(blockHash)) return;
  engine.validBlocks.set(blockHash, {parentHash: blockHash, blockHash, timestamp: 0, blockNumber: 0});
}

Engine.prototype.notifyNewPayload = function (payload, ...others) {
  const broken = verdict();
  if (broken) return broken;
  admit(this, payload.parentHash);
  return notifyNewPayload.call(this, payload, ...others);
};

Engine.prototype.notifyForkchoiceUpdate = function (choice, attributes) {
  const broken = verdict();
  if (broken) return {payloadStatus: broken, payloadId: null};
  for (const hash of [choice.headBlockHash, choice.safeBlockHash, choice.finalizedBlockHash]) admit(this, hash);
  // The mock tells the fork by a timestamp it was never given; attributes with withdrawals mean Capella.
  if (attributes?.withdrawals) this.opts.capellaForkTimestamp = -1;
  return notifyForkchoiceUpdate.call(this, choice, attributes);
};

// `--discv5 false` does not keep Lodestar 1.5.1 from starting discovery, which takes a worker thread and a UDP port.
// The devnet says itself who is linked with whom.
const {Network} = await load("@lodestar/beacon-node/lib/network/network.js");
const {start} = Network.prototype;
Network.prototype.start = function () {
  this.peerManager.discovery = null;
  return start.call(this);
};

// Lodestar stores a state to start from every 32 epochs. Storing each finalized one keeps a restart short.
const {StatesArchiver} = await load("@lodestar/beacon-node/lib/chain/archiver/archiveStates.js");
StatesArchiver.prototype.maybeArchiveState = StatesArchiver.prototype.archiveState;

// A node whose head is an epoch old calls itself syncing and refuses duties, so a chain that paused that long would
// never go on. DEVNET_TOLERANCE (slots) widens this for the node that serves the validators.
if (process.env.DEVNET_TOLERANCE) {
  const {BeaconSync} = await load("@lodestar/beacon-node/lib/sync/sync.js");
  const tolerance = Number(process.env.DEVNET_TOLERANCE);
  Object.defineProperty(BeaconSync.prototype, "slotImportTolerance", {get: () => tolerance, set() {}});
}

// Lodestar gives an execution engine 500 ms for a payload it was not told of before, as happens in the first slot of each
// epoch, because the finalized block is another one by then. That is 1/24 of a slot of 12 s; of the devnet's slots it would
// be so much that attesters vote without the block.
const PAYLOAD_WAIT = 500;
const slot = 1000 * Number(process.argv[process.argv.indexOf("--params.SECONDS_PER_SLOT") + 1]);
const {setTimeout: wait} = globalThis;
globalThis.setTimeout = Object.defineProperties(
  (call, delay, ...others) => wait(call, delay === PAYLOAD_WAIT && slot ? slot / 24 : delay, ...others),
  Object.getOwnPropertyDescriptors(wait),
);

const main = new URL("@chainsafe/lodestar/lib/index.js", modules);
process.argv[1] = main.pathname;
await import(main);
