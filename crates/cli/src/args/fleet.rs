//! `kerntune fleet`.

use super::Json;
use clap::{Args, Subcommand};
use kerntune_fleet::{Filter, Key};
use std::num::NonZeroUsize;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum Fleet {
    /// Put copies of profiles below a prefix, by build id, date, host and workload
    Add {
        /// The directory of the fleet's profiles, created if it does not exist
        prefix: PathBuf,
        /// Beginnings of ids, directories, `latest`, or `latest:workload=rr,kernel=base`
        #[arg(required = true)]
        profiles: Vec<String>,
        /// The machine that the profiles come from [default: the name of this machine]
        #[arg(long, value_name = "NAME")]
        host: Option<String>,
        #[command(flatten)]
        format: Json,
    },
    /// Add up profiles of one kernel, thousands in bounded memory, into one profile in the work directory
    Merge {
        /// The directory of the fleet's profiles
        prefix: PathBuf,
        #[command(flatten)]
        which: Which,
        /// Weight of the profiles whose build_id, date, host or workload has this value: a whole number up to 1,000,000, as in
        /// workload=redis:3; 0 leaves them out. The first match counts, and a profile without a match has weight 1; may be
        /// repeated
        #[arg(long, value_name = "KEY=VALUE:WEIGHT")]
        weight: Vec<String>,
        /// Threads that read and add profiles, each with a few dozen in memory; all CPUs if not given
        #[arg(short, long, value_name = "N")]
        jobs: Option<NonZeroUsize>,
        #[command(flatten)]
        format: Json,
    },
    /// Sum profiles by build, day, host or workload; or print the views with which DuckDB can
    Query {
        /// The directory of the fleet's profiles
        prefix: PathBuf,
        #[command(flatten)]
        which: Which,
        /// Sum by this: build_id, date, host or workload; may be repeated
        #[arg(long, value_parser = key)]
        by: Vec<Key>,
        /// Show what this function did in each group; reads every profile
        #[arg(long, value_name = "NAME")]
        function: Option<String>,
        /// Print DuckDB's statements for a view of each table, and nothing else
        #[arg(long, conflicts_with_all = ["by", "function", "json"])]
        sql: bool,
        #[command(flatten)]
        format: Json,
    },
}

/// Which profiles of a fleet.
#[derive(Debug, Clone, Args)]
pub struct Which {
    /// Only those of this kernel: the beginning of its id
    #[arg(long, value_name = "ID")]
    build_id: Option<String>,
    /// Only those of this machine
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Only those of this workload
    #[arg(long, value_name = "NAME")]
    workload: Option<String>,
    /// Only those from this day on, as 2026-11-25 (UTC)
    #[arg(long, value_name = "DAY")]
    since: Option<String>,
    /// Only those up to this day
    #[arg(long, value_name = "DAY")]
    until: Option<String>,
}

impl Which {
    /// As the library takes it.
    pub fn filter(&self) -> Filter {
        let Self { build_id, host, workload, since, until } = self.clone();
        Filter { build_id, host, workload, since, until }
    }
}

fn key(name: &str) -> Result<Key, String> {
    let keys = Key::ALL.map(Key::name).join(", ");
    Key::named(name).ok_or_else(|| format!("give one of {keys}"))
}
