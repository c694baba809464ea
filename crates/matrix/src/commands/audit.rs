//! The audit of the stores of matrices, a part of `kerntune check`.

use super::opening::own_store;
use crate::{audit, open, open_existing, Store, StoreAudit};
use clap::Args;
use kerntune_command::{AuditStores, AuditedStore, CliOutput, Failure};
use kerntune_work::WorkDir;
use serde::Serialize;
use std::path::Path;

// Not a doc comment: it would replace the help of `check`.
#[derive(Debug, Args)]
pub struct MatrixAudit {
    /// Check also this store of matrices: a directory or a URL; may be repeated; the store in the
    /// work directory is always checked
    #[arg(long, value_name = "URL")]
    store: Vec<String>,
}

#[derive(Serialize)]
struct AuditDocument {
    store: String,
    #[serde(flatten)]
    audit: StoreAudit,
}

impl AuditStores for MatrixAudit {
    fn audit(&self, work: &WorkDir, output: &CliOutput) -> Result<Vec<AuditedStore>, Failure> {
        let own = own_store(work);
        let own = Path::new(&own).is_dir().then(|| open(&own));
        // An empty or missing store that the user named is an error: the name is probably wrong.
        let named = self.store.iter().map(|address| open_existing(address));
        let read = |store: crate::Result<Box<dyn Store>>| {
            let store = store?;
            let url = store.url();
            output.progress().note(&url);
            let audit = audit(&*store, work)?;
            let wrong = audit.findings.iter();
            let mut lines: Vec<String> =
                wrong.map(|finding| format!("{url}: {}: {}", finding.object, finding.what)).collect();
            lines.push(format!("{url}: {} objects, {} wrong", audit.objects, audit.findings.len()));
            let is_whole = audit.findings.is_empty();
            let document = serde_json::json!(AuditDocument { store: url, audit });
            Ok(AuditedStore { document, lines, is_whole })
        };
        own.into_iter().chain(named).map(read).collect()
    }
}
