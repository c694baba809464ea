//! Arguments of `kerntune fleet`.

use super::FormatOptions;
use clap::{Args, Subcommand};
use kerntune_fleet::{PartitionKey, ProfileFilter};
use std::num::NonZeroUsize;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum FleetCommand {
    /// Copy profiles below a prefix, ordered by build id, date, host and workload
    Add {
        /// The directory of the fleet's profiles, created if it does not exist
        prefix: PathBuf,
        /// Beginnings of ids, directories, `latest`, or `latest:workload=rr,kernel=base`
        #[arg(required = true)]
        profiles: Vec<String>,
        /// The machine that recorded the profiles [default: the name of this machine]
        #[arg(long, value_name = "NAME")]
        host: Option<String>,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Add up profiles of one kernel into one profile in the work directory; memory stays bounded
    /// for thousands of profiles
    Merge {
        /// The directory of the fleet's profiles
        prefix: PathBuf,
        #[command(flatten)]
        which: FleetSelection,
        /// Weight of the profiles whose build_id, date, host or workload has this value: a whole
        /// number up to 1,000,000, for example workload=redis:3; 0 leaves them out. The first match
        /// counts; profiles without a match have weight 1; may be repeated
        #[arg(long, value_name = "KEY=VALUE:WEIGHT")]
        weight: Vec<String>,
        /// Number of threads that read and add profiles, each with a few dozen in memory [default:
        /// number of CPUs]
        #[arg(short, long, value_name = "N")]
        jobs: Option<NonZeroUsize>,
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Sum profiles by build, day, host or workload; or print SQL views for queries with DuckDB
    Query {
        /// The directory of the fleet's profiles
        prefix: PathBuf,
        #[command(flatten)]
        which: FleetSelection,
        /// Group by this: build_id, date, host or workload; may be repeated
        #[arg(long, value_parser = key)]
        by: Vec<PartitionKey>,
        /// Show the figures of this function in each group; reads every profile
        #[arg(long, value_name = "NAME")]
        function: Option<String>,
        /// Print only DuckDB statements that define a view of each table
        #[arg(long, conflicts_with_all = ["by", "function", "json"])]
        sql: bool,
        #[command(flatten)]
        format: FormatOptions,
    },
}

/// Options that select profiles of a fleet.
#[derive(Debug, Clone, Args)]
pub struct FleetSelection {
    /// Select profiles of this kernel: the beginning of its build id
    #[arg(long, value_name = "ID")]
    build_id: Option<String>,
    /// Select profiles of this machine
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Select profiles of this workload
    #[arg(long, value_name = "NAME")]
    workload: Option<String>,
    /// Select profiles from this day on, for example 2026-11-25 (UTC)
    #[arg(long, value_name = "DAY")]
    since: Option<String>,
    /// Select profiles up to this day
    #[arg(long, value_name = "DAY")]
    until: Option<String>,
}

impl FleetSelection {
    /// Converts the options to the fleet library's filter.
    pub fn filter(&self) -> ProfileFilter {
        let Self { build_id, host, workload, since, until } = self.clone();
        ProfileFilter { build_id, host, workload, since, until }
    }
}

fn key(name: &str) -> Result<PartitionKey, String> {
    let keys = PartitionKey::ALL.map(PartitionKey::name).join(", ");
    PartitionKey::named(name).ok_or_else(|| format!("give one of {keys}"))
}
