//! Numbering of call tree nodes and of arcs' accounts, so that chunks' counts can be added up in
//! columns.

use rustc_hash::FxHashMap;

/// Missing node, account or caller.
pub(super) const NOTHING: u32 = u32::MAX;

/// Identity of a node. `what` is a function's number in the trace or a code (`numbers.rs`);
/// `parent` is [`NOTHING`] for roots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeName {
    pub group: u32,
    pub parent: u32,
    pub what: i64,
    pub how: u8,
    /// Account of the arc that leads to the node; [`NOTHING`] for nodes that are not functions.
    pub account: u32,
}

/// Identity of an account: an arc in a group of regions. `caller` is [`NOTHING`] if no function is
/// the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct AccountName {
    pub group: u32,
    pub caller: u32,
    pub function: u32,
    pub how: u8,
}

/// Numbers of nodes, accounts and cells; parents precede children.
#[derive(Default)]
pub(super) struct NameTable {
    pub nodes: Vec<NodeName>,
    pub accounts: Vec<AccountName>,
    /// Account and bucket of histogram cells that have calls.
    pub cells: Vec<(u32, u32)>,
    of_cell: FxHashMap<(u32, u32), u32>,
    of_node: FxHashMap<(u32, u32, i64, u8), u32>,
    of_account: FxHashMap<AccountName, u32>,
}

impl NameTable {
    /// Returns the root node of a group that `what` stands for.
    pub fn root(&mut self, group: u32, what: i64) -> u32 {
        self.node(group, NOTHING, what, 0)
    }

    /// Returns the node of `what` below `parent`.
    #[inline]
    pub fn child(&mut self, parent: u32, what: i64, how: u8) -> u32 {
        let group = self.nodes.get(parent as usize).map_or(0, |node| node.group);
        self.node(group, parent, what, how)
    }

    #[inline]
    fn node(&mut self, group: u32, parent: u32, what: i64, how: u8) -> u32 {
        if let Some(known) = self.of_node.get(&(group, parent, what, how)) {
            return *known;
        }
        let account = match u32::try_from(what) {
            Ok(function) => {
                let above = self.nodes.get(parent as usize);
                let caller = above.and_then(|node| u32::try_from(node.what).ok()).unwrap_or(NOTHING);
                self.account(AccountName { group, caller, function, how })
            }
            Err(_) => NOTHING,
        };
        let at = self.nodes.len() as u32;
        self.nodes.push(NodeName { group, parent, what, how, account });
        self.of_node.insert((group, parent, what, how), at);
        at
    }

    fn account(&mut self, name: AccountName) -> u32 {
        let accounts = &mut self.accounts;
        *self.of_account.entry(name).or_insert_with(|| {
            accounts.push(name);
            accounts.len() as u32 - 1
        })
    }

    /// Returns the number of an account's bucket.
    pub fn cell(&mut self, account: u32, bucket: u32) -> u32 {
        let cells = &mut self.cells;
        *self.of_cell.entry((account, bucket)).or_insert_with(|| {
            cells.push((account, bucket));
            cells.len() as u32 - 1
        })
    }

    /// Maps the names of `other` to numbers in this table. `nodes` and `accounts` have the numbers
    /// learned so far and are extended.
    pub fn learn(&mut self, other: &NameTable, nodes: &mut Vec<u32>, accounts: &mut Vec<u32>) {
        for node in other.nodes.get(nodes.len()..).unwrap_or_default() {
            let parent = nodes.get(node.parent as usize).copied().unwrap_or(NOTHING);
            nodes.push(self.node(node.group, parent, node.what, node.how));
        }
        for account in other.accounts.get(accounts.len()..).unwrap_or_default() {
            accounts.push(self.account(*account));
        }
    }
}
