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
        /// The directory of the fleet's profiles, made if need be
        prefix: PathBuf,
        /// Beginnings of ids, directories, `latest`, or `latest:workload=rr,kernel=base`
        #[arg(required = true)]
        profiles: Vec<String>,
        /// The machine that they are of [default: the name of this one]
        #[arg(long, value_name = "NAME")]
        host: Option<String>,
        #[command(flatten)]
        format: Json,
    },
    /// Add profiles of one kernel up, thousands in bounded memory: one profile, kept in the work directory
    Merge {
        /// The directory of the fleet's profiles
        prefix: PathBuf,
        #[command(flatten)]
        which: Which,
        /// What a profile counts for: build_id, date, host or workload, its value, and a whole number up to 1,000,000, as
        /// workload=redis:3; the first that fits, 1 if none does; 0 leaves it out; may be repeated
        #[arg(long, value_name = "KEY=VALUE:WEIGHT")]
        weight: Vec<String>,
        /// Threads that read and add, each with a few dozen profiles in memory; all CPUs if not given
        #[arg(short, long, value_name = "N")]
        jobs: Option<NonZeroUsize>,
        #[command(flatten)]
        format: Json,
    },
    /// Sum profiles by build, day, host or workload; or write the views with which DuckDB does
    Query {
        /// The directory of the fleet's profiles
        prefix: PathBuf,
        #[command(flatten)]
        which: Which,
        /// Sum by this: build_id, date, host or workload; may be repeated
        #[arg(long, value_parser = key)]
        by: Vec<Key>,
        /// What this function did in each group: every profile is read
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
    Key::named(name).ok_or_else(|| format!("it is none of {keys}"))
}
