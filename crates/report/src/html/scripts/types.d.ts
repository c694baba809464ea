// Types of the page's scripts. The document's columns are described in data.rs, moments.rs, cpus.rs and code.rs.

interface PageDocument {
  id: string;
  exact: boolean;
  label: string;
  operations: number;
  weights: boolean;
  sample_ns: number;
  /** Begin of the page's first region. */
  origin: number;
  calls: boolean;
  names: string[];
  symbol: number[];
  file: number[];
  module: number[];
  files: string[];
  modules: string[];
  loaded?: number[];
  comms: string[];
  hows: CallKind[];
  views: RegionView[];
  groups: Group[];
  time: TimeData | null;
  traced: boolean;
  code: number[];
  code_rest: string;
  /** Second profile, whose functions and threads have the numbers of the first. */
  other?: SecondProfile;
}
interface SecondProfile {
  label: string;
  operations: number;
  views: RegionView[];
  groups: Group[];
}
type CallKind = "call" | "jump" | "interrupt" | "exception" | "syscall";
interface RegionView {
  name: string | null;
  groups: number[];
  elapsed: number;
  busy: number;
  idle: number;
  user: number;
}
interface Group {
  tree: TreeColumns;
  functions: FunctionColumns;
  arcs: ArcColumns;
  histograms: HistogramColumns;
}
interface TreeColumns {
  d: number[];
  f: number[];
  h: number[];
  c: number[];
  w: number[][];
  /** The same as a tree, once it is needed. */
  raw?: RawTree;
}
interface FunctionColumns {
  f: number[];
  calls: number[];
  ended: number[];
  net: number[];
  elapsed: number[];
  slowest: number[];
  at: number[];
}
interface ArcColumns {
  from: number[];
  to: number[];
  h: number[];
  calls: number[];
  ended: number[];
  elapsed: number[];
}
interface HistogramColumns {
  f: number[];
  c: number[];
  b: number[];
  n: number[];
}
interface TimeData {
  spans: [begin: number, end: number, firstBin: number, bins: number][];
  lanes: Lane[];
  bins: { b: number[]; l: number[]; n: number[] };
  slices: SliceColumns;
  regions: [name: string, begin: number, end: number, depth: number, operations: number][];
  places: [label: string, f: number, begin: number, end: number][];
  cpus?: { bins: { b: number[]; k: number[]; n: number[] }; slices: SliceColumns }[];
  cpu_count: number;
  threads: [code: number, lane: number][];
  unknown: number;
  groups: number[];
  kernel_functions: number;
  first_loaded?: number;
  wide: boolean;
  chunks: { b: number[]; e: number[]; n: number[]; o: number[]; l: number[] };
}
interface Lane {
  name: string;
  kind: "thread" | "task" | "others" | "interrupt" | "idle";
  pid: number | null;
}
interface SliceColumns {
  b: number[];
  n: number[];
  l: number[];
  c?: number[];
  k?: number[];
}

/** Tree of call paths in columns, parents before children; `sums` include everything below a node. */
interface RawTree extends RawNodes {
  roots: number[];
  sums: Float64Array[];
  first: Int32Array;
  next: Int32Array;
}
interface RawNodes {
  n: number;
  f: Int32Array;
  how: Uint8Array;
  calls: Float64Array;
  own: Float64Array[];
  up: Int32Array;
}
/** Operation on the paths, and its function. */
type PathOperation = [what: string, f: number];
type TreeMode = "down" | "up" | "from" | "to";
/** Tree on display; nodes are created when their parent is opened (core/tree.js). */
interface ShownTree {
  raws: RawTree[];
  kind: TreeMode;
  sides: number[];
  n: number;
  roots: number;
  f: number[];
  how: number[];
  parent: number[];
  start: number[];
  end: number[];
  calls: number[];
  callsB: number[];
  members: number[][];
  own: number[][];
  all: number[][];
  b: number[][];
  orders: Map<number, number[]>[];
  totals: number[];
  totalsB: number[];
}

interface FunctionRow {
  f: number;
  calls: number;
  ended: number;
  net: number;
  elapsed: number;
  slowest: number;
  at: number;
  /** Added up from the tree. */
  derived?: boolean;
}
interface Arc {
  from: number;
  to: number;
  how: CallKind;
  calls: number;
  ended: number;
  elapsed: number;
}
interface HistogramRow {
  caller: number;
  bucket: number;
  count: number;
}
interface ArcTables {
  callers: Map<number, Arc[]>;
  callees: Map<number, Arc[]>;
}
interface Tables extends ArcTables {
  functions: Map<number, FunctionRow>;
  histograms: Map<number, HistogramRow[]>;
}
/** All that the page shows of a profile. */
interface ProfileSide extends Tables {
  about: RegionView;
  raws: RawTree[];
}
interface Weight {
  id: string;
  column: number;
  title: string;
  unit: (n: number) => string;
  bare: (n: number) => string;
}

interface PageState {
  region: number;
  fn: number;
  weight: string;
  mode: TreeMode;
  show: "flame" | "table";
  zoom: string;
  from: number | null;
  to: number | null;
  sel: string | null;
  ops: string;
  q: string;
  profile: "a" | "b" | "both" | "diff";
  sort: string;
  tab: "calls" | "histogram" | "source";
}
/** Sums of a selection: tables by group, and busy, idle and user time by group. */
interface SelectionTables {
  groups: Group[];
  times: number[][];
}
/** Where the page has its data from: itself, or its server. */
interface PageSource {
  chunk: (chunk: ChunkPlace) => Promise<Uint8Array>;
  code: (f: number) => Promise<FunctionCode | string>;
  select: (
    from: number,
    to: number,
    isStale: () => boolean,
    progress: (part: number) => void,
  ) => Promise<SelectionTables | null>;
  overview: (wait: (text: string) => void) => Promise<TimeData | null>;
}
interface FunctionCode {
  executed: number;
  note: string;
  files: string[];
  lines: [file: number, number: number, ran: number | null, text: string | null][];
  code: [address: string, ran: number, taken: number, text: string, line: number][];
}

interface ChunkPlace {
  number: number;
  begin: number;
  end: number;
  events: number;
  offset: number;
  bytes: number;
}
/** Chunk of the trace, unpacked: its events begin at `at`. */
interface OpenedChunk extends ChunkOpening {
  cpu: number;
  events: number;
  begin: number;
  end: number;
  raw: Uint8Array;
  at: number;
}
interface ChunkOpening {
  user: boolean;
  waiting: WaitingCpu[];
  regions: number[];
  stacks: { thread: number; running: boolean; f: number[]; how: number[] }[];
}
interface WaitingCpu {
  cpu: number;
  running: number;
  user: boolean;
  halted: boolean;
}
interface ReplayVisitor {
  arrive: (machine: Machine, stack: Stack) => void;
  region: (machine: Machine, stack: Stack) => void;
  pass: (machine: Machine, stack: Stack, ns: number, taken: number, l1i: number, itlb: number) => void;
  idle: (machine: Machine, stack: Stack, ns: number) => void;
  enter: (machine: Machine, stack: Stack, f: number, how: number) => void;
  ended: (machine: Machine, stack: Stack, top: number) => void;
}
type Machine = import("./trace/replay.js").Machine;
type Stack = import("./trace/stack.js").Stack;
type CallTreeNodes = import("./trace/nodes.js").CallTreeNodes;
type Accounts = import("./trace/accounts.js").Accounts;
/** Counts of a chunk, or of a part of one, in columns. */
interface ChunkRecord {
  begin: number;
  end: number;
  /** By thread: number of frames that were open at the begin. */
  base: number[];
  /** Those of them that ended: thread, account, elapsed within the chunk. */
  inherited: [thread: number, account: number, elapsed: number][];
  /** By thread: frames that are open at the end. */
  left: { carried: number; portions: number[]; begins: number[] }[];
  times: Map<number, number[]>;
  nodes: Int32Array;
  calls: Float64Array;
  own: Float64Array[];
  accounts: Int32Array;
  ended: Float64Array;
  elapsed: Float64Array;
  slowest: Float64Array;
  at: Float64Array;
  cells: Int32Array;
  counts: Float64Array;
}

/** Single call in the timeline; bit 1 of `cut`: its begin is not shown, bit 2: its end. */
interface SingleCall {
  begin: number;
  end: number;
  lane: number;
  depth: number;
  f: number;
  how: CallKind;
  cut: number;
  open: boolean;
}
interface LaneSlice {
  begin: number;
  end: number;
  lane: number;
  user: number;
  cpu: number;
}
interface CpuSlice {
  begin: number;
  end: number;
  kind: number;
  lane: number;
}
interface CallWindow {
  begin: number;
  end: number;
  calls: SingleCall[];
  slices: LaneSlice[];
  cpus: CpuSlice[][];
  stacks: (SingleCall | undefined)[][];
}
/** On the timeline's scale, which leaves out the gaps between recorded stretches. */
type Placed<T> = T & { u0: number; u1: number };
interface PlacedWindow {
  u0: number;
  u1: number;
  calls: Placed<SingleCall>[];
  slices: Placed<LaneSlice>[];
  cpus: Placed<CpuSlice>[][];
}
type TimelinePlace = Placed<{ label: string; function: number; begin: number; end: number }>;
interface TimelineModel {
  spans: { begin: number; end: number; first: number; bins: number; u: number }[];
  length: number;
  toU: (time: number) => number;
  toTime: (u: number) => number;
  count: number;
  upTo: (sum: Float64Array, u: number) => number;
  /** By lane: kernel and user. */
  sums: Float64Array[][];
  slices: Placed<LaneSlice>[];
  places: TimelinePlace[];
  placed: (window: CallWindow) => PlacedWindow;
  regions: Placed<{ name: string; begin: number; end: number; depth: number; operations: number }>[];
  cpus: { sums: Float64Array[]; slices: Placed<CpuSlice>[] }[];
  lanes: Lane[];
}
type Fact = [name: string, value: string];
interface Zone {
  x0: number;
  x1: number;
  y0: number;
  y1: number;
  head: string;
  lines: Fact[];
  /** Stretch that a click shows. */
  go?: [number, number];
}
interface DrawnCall {
  x0: number;
  x1: number;
  y0: number;
  y1: number;
  call: Placed<SingleCall>;
  window: PlacedWindow;
}
interface Drag {
  x: number;
  u0: number;
  u1: number;
  moved: boolean;
  pan: boolean;
  anchor: number;
  select: [number, number] | null;
}
/** State of the timeline that its parts share. */
interface TimelineView {
  canvas: HTMLCanvasElement;
  model: TimelineModel;
  small: boolean;
  /** Width of the lanes' names. */
  left: number;
  width: number;
  u0: number;
  u1: number;
  places: { y: number; rows: number }[];
  /** Number of lanes without activity. */
  hidden: number;
  zones: Zone[];
  drawn: DrawnCall[];
  detailed: PlacedWindow[];
  drag: Drag | null;
}
/** What gestures do. */
interface TimelineActions {
  redraw: () => void;
  show: (u0: number, u1: number) => void;
  zoom: (factor: number, at?: number) => void;
  showPlace: (place: { u0: number; u1: number }) => void;
  select: (u0: number, u1: number) => void;
}
