//! Runs a plan as Slurm job arrays.
//!
//! Tasks that need the same resources and wait for the same tasks form one array; each element is a
//! worker for one task. An array waits for the elements that make what it needs
//! (`--dependency=afterany`). Slurm requeues elements of a lost node. When no job is left, tasks
//! without a result are submitted once more. An element that Slurm reports as running but whose
//! task shows no progress is canceled: its node was lost before it began. Results and claims in
//! the store, not Slurm, ensure that a task is computed once.

use crate::claim::{self, Claim};
use crate::{worker, CoreDemand, Error, MatrixPlan, Result, Store, Task};
use kerntune_work::{interrupt, write_atomic, Id, IoContext, Job, JobEnd, Progress};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Elements per array: Slurm's default limit (`MaxArraySize`) is 1,001.
const MAX_ELEMENTS: usize = 1_000;
/// Submissions without a single new result after which the run gives up.
const MAX_FRUITLESS: usize = 3;

/// Time limit of a Slurm command.
const CALL_LIMIT: Duration = Duration::from_secs(120);

/// An array of jobs to submit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobArray {
    /// One task for each element.
    pub tasks: Vec<Id>,
    /// CPUs that each element takes.
    pub cores: CoreDemand,
    /// Elements that must end first: index of the array, and of the element in it.
    pub after: Vec<(usize, usize)>,
}

/// Groups the plan's tasks for which `open` holds into as few arrays as possible, each after those
/// that it waits for.
pub fn arrays(plan: &MatrixPlan, open: impl Fn(&Task) -> bool) -> Vec<JobArray> {
    let mut place: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut arrays: Vec<JobArray> = Vec::new();
    let mut by: BTreeMap<(bool, Vec<&str>), usize> = BTreeMap::new();
    let open: Vec<&Task> = plan.tasks.iter().filter(|task| open(task)).collect();
    let ids: BTreeSet<&str> = open.iter().map(|task| task.id.as_str()).collect();
    for task in open {
        let needs: Vec<&str> = task.needs.iter().map(Id::as_str).filter(|need| ids.contains(need)).collect();
        let cores = task.kind.cores();
        let after = needs.iter().filter_map(|need| place.get(need).copied()).collect();
        let fresh = arrays.len();
        let at = by.entry((cores == CoreDemand::One, needs)).or_insert(fresh);
        if arrays.get(*at).is_some_and(|array| array.tasks.len() == MAX_ELEMENTS) {
            *at = fresh;
        }
        if *at == fresh {
            arrays.push(JobArray { tasks: Vec::new(), cores, after });
        }
        place.insert(&task.id, (*at, arrays[*at].tasks.len()));
        arrays[*at].tasks.push(task.id.clone());
    }
    arrays
}

/// An array that Slurm has accepted.
struct SubmittedArray {
    id: String,
    tasks: Vec<Id>,
}

/// Last claim of each running element's task, and since when it has not changed.
type ElementLiveness = BTreeMap<String, (Option<(u64, Claim)>, Instant)>;

/// Submits a plan to Slurm.
pub struct Slurm<'a> {
    /// Plan to compute.
    pub plan: &'a MatrixPlan,
    /// Store of results and claims, at its address on this machine.
    pub store: &'a dyn Store,
    /// Directory for scripts and logs that this machine shares with the nodes.
    pub directory: &'a Path,
    /// Program and arguments that start the worker on a node; `--task ID` is appended.
    pub worker: &'a [String],
    /// Further options of `sbatch`: `--partition=long`, `--time=60`.
    pub options: &'a [String],
    /// Interval at which Slurm and the store are asked.
    pub look: Duration,
    /// Time without progress after which a running element is canceled: two leases, and the time
    /// to pack a guest image.
    pub patience: Duration,
}

/// Outcome of running a plan in Slurm.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SlurmSummary {
    /// Job ids of the arrays.
    pub jobs: Vec<String>,
    /// Number of submissions.
    pub rounds: usize,
}

impl Slurm<'_> {
    /// Submits every task without a result, and waits until each has one, failed, or needs one that
    /// failed.
    ///
    /// # Errors
    /// Slurm accepts no jobs; tasks that repeatedly ended without a result; an interrupt, after the
    /// jobs were canceled.
    pub fn run(&self, progress: &dyn Progress) -> Result<SlurmSummary> {
        fs::create_dir_all(self.directory).at("create", self.directory)?;
        let mut handed = SlurmSummary::default();
        let mut fruitless = 0;
        let total = self.plan.tasks.len() as u64;
        progress.begin("tasks in Slurm", Some(total));
        loop {
            let before = worker::finished(self.store)?;
            let missing = self.missing()?;
            if missing.is_empty() {
                break;
            }
            if fruitless == MAX_FRUITLESS {
                progress.end();
                return Err(self.error("sbatch", format!(
                    "{} tasks have no result after their jobs were handed in {MAX_FRUITLESS} times; logs are in {}",
                    missing.len(),
                    self.directory.display()
                )));
            }
            let (jobs, refused) = self.submit(&missing, progress)?;
            handed.rounds += 1;
            let tasks: usize = jobs.iter().map(|job| job.tasks.len()).sum();
            progress.note(&format!("handed to Slurm: {tasks} tasks in {} arrays", jobs.len()));
            if let Some(refused) = refused {
                progress.note(&format!("warning: {refused}; the other tasks follow when these have ended"));
            }
            let waited = self.wait(&jobs, progress);
            handed.jobs.extend(jobs.iter().map(|job| job.id.clone()));
            if let Err(error) = waited {
                let _ =
                    self.run_slurm("scancel", &jobs.iter().map(|job| job.id.as_str()).collect::<Vec<_>>());
                progress.end();
                return Err(error);
            }
            let more = worker::finished(self.store)?.difference(&before).count();
            fruitless = if more == 0 { fruitless + 1 } else { 0 };
        }
        progress.end();
        Ok(handed)
    }

    /// Returns the tasks that can still be computed.
    fn missing(&self) -> Result<BTreeSet<Id>> {
        let (finished, mut over) = (worker::finished(self.store)?, worker::failed(self.store)?);
        let mut missing = BTreeSet::new();
        for task in self.plan.tasks.iter().filter(|task| !finished.contains(&task.id)) {
            match over.contains(&task.id) || task.needs.iter().any(|need| over.contains(need)) {
                true => drop(over.insert(task.id.clone())),
                false => drop(missing.insert(task.id.clone())),
            }
        }
        Ok(missing)
    }

    /// Submits arrays. Returns those that Slurm accepted, which run in any case, and the error of
    /// the first that it did not.
    fn submit(
        &self,
        missing: &BTreeSet<Id>,
        progress: &dyn Progress,
    ) -> Result<(Vec<SubmittedArray>, Option<Error>)> {
        let arrays = arrays(self.plan, |task| missing.contains(&task.id));
        let mut jobs: Vec<SubmittedArray> = Vec::with_capacity(arrays.len());
        for (number, array) in arrays.iter().enumerate() {
            let stem = format!("{}-{number}", crate::process::process().replace('@', "-"));
            let list = self.directory.join(format!("{stem}.tasks"));
            write_atomic(
                &list,
                (array.tasks.iter().map(|task| format!("{task}\n")).collect::<String>()).as_bytes(),
            )?;
            let script = self.directory.join(format!("{stem}.sh"));
            write_atomic(&script, self.script(&list).as_bytes())?;
            let after: Vec<String> =
                array.after.iter().map(|(at, element)| format!("{}_{element}", jobs[*at].id)).collect();
            let mut arguments = vec![
                "--parsable".to_owned(),
                "--requeue".into(),
                format!("--job-name=kerntune-{}", self.plan.name),
                format!("--array=0-{}", array.tasks.len() - 1),
                format!("--output={}/%A_%a.log", self.directory.display()),
                "--open-mode=append".into(),
            ];
            match array.cores {
                CoreDemand::All => arguments.push("--exclusive".into()),
                CoreDemand::One => arguments.extend(["--ntasks=1".into(), "--cpus-per-task=1".into()]),
            }
            if !after.is_empty() {
                arguments.push(format!("--dependency=afterany:{}", after.join(":")));
            }
            arguments.extend(self.options.iter().cloned());
            arguments.push(script.display().to_string());
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            match self
                .call_patiently("sbatch", &arguments)
                .and_then(|answer| self.parse_id(&answer, progress))
            {
                Ok(id) => jobs.push(SubmittedArray { id, tasks: array.tasks.clone() }),
                Err(error @ Error::Slurm { .. }) if !jobs.is_empty() => return Ok((jobs, Some(error))),
                Err(error) => {
                    if let [_, ..] = jobs[..] {
                        let ids: Vec<&str> = jobs.iter().map(|job| job.id.as_str()).collect();
                        let _ = self.run_slurm("scancel", &ids);
                    }
                    return Err(error);
                }
            }
        }
        Ok((jobs, None))
    }

    /// Parses the id of an array from sbatch's output: the last line that is `103` or
    /// `103;cluster`. Reports what the site's plugins print.
    fn parse_id(&self, answer: &SlurmOutput, progress: &dyn Progress) -> Result<String> {
        for line in answer.errors.lines().filter(|line| !line.trim().is_empty()) {
            progress.note(&format!("warning: sbatch: {line}"));
        }
        let ids = answer.output.lines().rev().filter_map(job_id);
        ids.map(str::to_owned).next().ok_or_else(|| {
            let said = answer.output.trim();
            let said = if said.is_empty() { "nothing" } else { said };
            self.error("sbatch", format!("it ended well and printed no number of a job, but {said}"))
        })
    }

    /// Script that each element runs on its node.
    fn script(&self, list: &Path) -> String {
        let worker: Vec<String> = self.worker.iter().map(|word| quoted(word)).collect();
        format!(
            "#!/bin/sh\n# Made by kerntune: the worker for one task of a plan.\n\
             task=$(sed -n \"$((SLURM_ARRAY_TASK_ID + 1))p\" {}) || exit 1\n\
             exec {} --task \"$task\"\n",
            quoted(&list.display().to_string()),
            worker.join(" ")
        )
    }

    /// Waits until Slurm has none of these jobs any more, or every task is finished.
    fn wait(&self, jobs: &[SubmittedArray], progress: &dyn Progress) -> Result<()> {
        let ids: Vec<&str> = jobs.iter().map(|job| job.id.as_str()).collect();
        let list = format!("--jobs={}", ids.join(","));
        let mut away = false;
        let mut liveness = BTreeMap::new();
        loop {
            let until = Instant::now() + self.look;
            while Instant::now() < until {
                interrupt::check()?;
                std::thread::sleep(Duration::from_millis(50).min(self.look));
            }
            progress.at((self.plan.tasks.len() - self.missing()?.len()) as u64);
            if self.missing()?.is_empty() {
                // Elements may remain that were lost and whose tasks other machines finished.
                let _ = self.run_slurm("scancel", &ids);
                return Ok(());
            }
            match self.run_slurm("squeue", &["--noheader", "--array", "--format=%i %T %r", &list]) {
                Ok(SlurmOutput { output, .. }) if output.trim().is_empty() => return Ok(()),
                Ok(SlurmOutput { output, .. }) => {
                    away = false;
                    for element in self.lost_elements(&output, jobs, &mut liveness)? {
                        progress.note(&format!("job {element} is lost: it is canceled, and handed in again"));
                        let _ = self.run_slurm("scancel", &[&element]);
                    }
                }
                // Slurm forgets ended jobs after a while (MinJobAge).
                Err(Error::Slurm { message, .. }) if message.contains("Invalid job id") => return Ok(()),
                Err(Error::Slurm { message, .. }) if !away => {
                    away = true;
                    progress.note(&format!("Slurm's controller does not answer ({message}): waiting for it"));
                }
                Err(Error::Slurm { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns lost elements: those that Slurm reports as running but whose task shows no progress,
    /// and those held because their launch failed.
    fn lost_elements(
        &self,
        said: &str,
        jobs: &[SubmittedArray],
        liveness: &mut ElementLiveness,
    ) -> Result<Vec<String>> {
        let word = |line: &str, at| line.split_whitespace().nth(at).unwrap_or_default().to_owned();
        let held = said.lines().filter(|line| line.contains(" PENDING ") && line.contains("launch failed"));
        let mut dead: Vec<String> = held.map(|line| word(line, 0)).collect();
        let running: Vec<String> =
            said.lines().filter(|line| word(line, 1) == "RUNNING").map(|line| word(line, 0)).collect();
        let mut seen = BTreeSet::new();
        for element in &running {
            let Some((id, number)) = element.split_once('_') else { continue };
            let job = jobs.iter().find(|job| job.id == id);
            let Some(task) = job.and_then(|job| job.tasks.get(number.parse::<usize>().ok()?)) else {
                continue;
            };
            seen.insert(element.clone());
            let life = claim::last(self.store, task)?;
            let (known, since) =
                liveness.entry(element.clone()).or_insert_with(|| (life.clone(), Instant::now()));
            if *known != life {
                (*known, *since) = (life, Instant::now());
            } else if since.elapsed() > self.patience {
                dead.push(element.clone());
            }
        }
        liveness.retain(|element, _| seen.contains(element));
        Ok(dead)
    }

    /// Runs a Slurm command, and repeats it while the controller is away.
    fn call_patiently(&self, program: &str, arguments: &[&str]) -> Result<SlurmOutput> {
        let mut tries = 0;
        loop {
            match self.run_slurm(program, arguments) {
                Err(Error::Slurm { message, .. }) if tries < 60 && is_away(&message) => {
                    tries += 1;
                    interrupt::check()?;
                    std::thread::sleep(Duration::from_secs(1));
                }
                other => return other,
            }
        }
    }

    fn run_slurm(&self, program: &str, arguments: &[&str]) -> Result<SlurmOutput> {
        let mut command = Command::new(program);
        command.args(arguments).env("LC_ALL", "C");
        let (end, [output, errors]) = Job::new(command).time_limit(CALL_LIMIT).outputs()?;
        if end.success() {
            return Ok(SlurmOutput { output, errors });
        }
        let last = |text: &str| text.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned);
        let reason = match end {
            JobEnd::TimedOut => format!("it did not answer within {} s", CALL_LIMIT.as_secs()),
            _ => last(&errors).or_else(|| last(&output)).unwrap_or_else(|| "it failed".into()),
        };
        let question =
            if is_away(&reason) { "; is this a machine that Slurm takes jobs from (`sinfo`)?" } else { "" };
        Err(self.error(program, reason + question))
    }

    fn error(&self, program: &str, message: String) -> Error {
        Error::Slurm { program: program.to_owned(), message }
    }
}

/// Output of a Slurm command.
struct SlurmOutput {
    output: String,
    errors: String,
}

/// Parses a job id from a line of `sbatch --parsable`.
fn job_id(line: &str) -> Option<&str> {
    let id = line.split(';').next()?.trim();
    (!id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit())).then_some(id)
}

/// Checks whether the message means that the controller is away and may come back.
fn is_away(message: &str) -> bool {
    ["Unable to contact slurm controller", "Socket timed out", "Connection refused"]
        .iter()
        .any(|words| message.contains(words))
}

/// Quotes a word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Directory of a plan's scripts and logs, below a shared directory.
pub fn directory(shared: &Path, plan: &str) -> PathBuf {
    shared.join("slurm").join(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KernelRef, SourceRef, TaskKind};

    fn plan(kernels: usize, workloads: usize) -> MatrixPlan {
        let model = kerntune_tune::model::find("generic").unwrap();
        let mut plan = MatrixPlan::new("test".into(), &model);
        let builds: Vec<Id> = (0..kernels)
            .map(|number| {
                let what = TaskKind::Build {
                    source: SourceRef::Named(format!("source-{number}")),
                    patches: vec![],
                    config: None,
                    fragments: vec![],
                    set: vec![],
                    compiler: "gcc".into(),
                    kcflags: vec![],
                    label: "k".parse().unwrap(),
                };
                plan.add(Task::new("build".into(), what, vec![("number".into(), number.to_string())]))
            })
            .collect();
        for build in &builds {
            for number in 0..workloads {
                let (kernel, run) = (KernelRef::Of(build.clone()), "measured".into());
                let what = TaskKind::Measure { kernel, workload: format!("w{number}"), run };
                let inputs =
                    vec![("kernel".into(), build.to_string()), ("number".into(), number.to_string())];
                plan.add(Task::new("measure".into(), what, inputs));
            }
        }
        plan
    }

    #[test]
    fn arrays_are_few_and_wait_for_single_builds() {
        let plan = plan(20, 50);
        let arrays = arrays(&plan, |_| true);
        assert_eq!(arrays.len(), 21);
        assert_eq!((arrays[0].tasks.len(), arrays[0].cores), (20, CoreDemand::All));
        for (number, array) in arrays[1..].iter().enumerate() {
            assert_eq!((array.tasks.len(), array.after.as_slice()), (50, &[(0, number)][..]));
        }
        // Finished tasks are not waited for.
        let builds: BTreeSet<&Id> = arrays[0].tasks.iter().collect();
        let rest = super::arrays(&plan, |task| !builds.contains(&task.id));
        assert_eq!(rest.len(), 1, "they wait for nothing, and are one array");
        assert_eq!((rest[0].tasks.len(), rest[0].after.len()), (1000, 0));
    }

    #[test]
    fn long_arrays_are_divided() {
        let plan = plan(1, 2500);
        let arrays = arrays(&plan, |_| true);
        assert_eq!(arrays.iter().map(|array| array.tasks.len()).collect::<Vec<_>>(), [1, 1000, 1000, 500]);
        let mut all: Vec<&Id> = arrays.iter().flat_map(|array| &array.tasks).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 2501);
    }

    #[test]
    fn ids_of_jobs() {
        for (line, id) in [("103", Some("103")), ("103;cluster", Some("103")), (" 7 ", Some("7"))] {
            assert_eq!(job_id(line), id);
        }
        for line in ["", "Submitted batch job 7", "lua: 7 jobs", ";x"] {
            assert_eq!(job_id(line), None, "{line}");
        }
    }

    #[test]
    fn words_are_quoted() {
        assert_eq!(quoted("it's $HOME"), "'it'\\''s $HOME'");
    }
}
