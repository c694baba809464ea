//! A plan as Slurm's job arrays.
//!
//! Tasks that take the same and wait for the same are one array; each element is a worker for one task. An array waits for the
//! elements that make what it needs (`--dependency=afterany`). Slurm starts what a lost node ran again; what is missing when no job is left
//! is handed in once more. An element that Slurm says runs, and that shows no life, is cancelled: it was lost with its node before it
//! began. That no task is computed twice is not Slurm's doing: results and claims are in the store.

use crate::claim::{self, Claim};
use crate::{turn, Cores, Error, Plan, Result, Store, Task};
use kerntune_work::{interrupt, write_atomic, Id, IoContext, Job, JobEnd, Progress};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Slurm takes arrays of 1,001 where nothing else is said (`MaxArraySize`).
const MOST_ELEMENTS: usize = 1_000;
/// So often everything that is missing is handed in again without that one task more is finished.
const FRUITLESS: usize = 3;

/// How long a program of Slurm may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// An array of jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    /// A task for each element.
    pub tasks: Vec<Id>,
    /// What each takes.
    pub cores: Cores,
    /// Elements that have to end first: number of the array among all, and of the element in it.
    pub after: Vec<(usize, usize)>,
}

/// The arrays for those of a plan's tasks for which `open` holds: few, each after those that it waits for.
pub fn arrays(plan: &Plan, open: impl Fn(&Task) -> bool) -> Vec<Array> {
    let mut place: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut arrays: Vec<Array> = Vec::new();
    let mut by: BTreeMap<(bool, Vec<&str>), usize> = BTreeMap::new();
    let open: Vec<&Task> = plan.tasks.iter().filter(|task| open(task)).collect();
    let ids: BTreeSet<&str> = open.iter().map(|task| task.id.as_str()).collect();
    for task in open {
        let needs: Vec<&str> = task.needs.iter().map(Id::as_str).filter(|need| ids.contains(need)).collect();
        let cores = task.what.cores();
        let after = needs.iter().filter_map(|need| place.get(need).copied()).collect();
        let fresh = arrays.len();
        let at = by.entry((cores == Cores::One, needs)).or_insert(fresh);
        if arrays.get(*at).is_some_and(|array| array.tasks.len() == MOST_ELEMENTS) {
            *at = fresh;
        }
        if *at == fresh {
            arrays.push(Array { tasks: Vec::new(), cores, after });
        }
        place.insert(&task.id, (*at, arrays[*at].tasks.len()));
        arrays[*at].tasks.push(task.id.clone());
    }
    arrays
}

/// An array that Slurm has.
struct JobArray {
    id: String,
    tasks: Vec<Id>,
}

/// The last claims of the tasks of elements that run, and since when they are as they are.
type Lives = BTreeMap<String, (Option<(u64, Claim)>, Instant)>;

/// How a plan is handed to Slurm.
pub struct Slurm<'a> {
    /// What is to be computed.
    pub plan: &'a Plan,
    /// Where results and claims are, for us.
    pub store: &'a dyn Store,
    /// A directory that this machine and the nodes share, for scripts and logs.
    pub directory: &'a Path,
    /// The worker as a node starts it: program and arguments; `--task ID` is added.
    pub worker: &'a [String],
    /// Further options of `sbatch`: `--partition=long`, `--time=60`.
    pub options: &'a [String],
    /// How often Slurm and the store are asked.
    pub look: Duration,
    /// After so long without a sign of life of its task an element that Slurm says runs is cancelled; twice a lease, and time to
    /// pack a guest image.
    pub patience: Duration,
}

/// What came of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Handed {
    /// Ids of the arrays.
    pub jobs: Vec<String>,
    /// How often what was missing was handed in.
    pub rounds: usize,
}

impl Slurm<'_> {
    /// Hands in every task that has no result, and waits until all have one, or failed, or need one that did.
    ///
    /// # Errors
    /// Slurm does not take jobs; tasks that Slurm ended again and again without a result; an interrupt, after the jobs were
    /// cancelled.
    pub fn run(&self, progress: &dyn Progress) -> Result<Handed> {
        fs::create_dir_all(self.directory).at("create", self.directory)?;
        let mut handed = Handed::default();
        let mut fruitless = 0;
        let total = self.plan.tasks.len() as u64;
        progress.begin("tasks in Slurm", Some(total));
        loop {
            let before = turn::finished(self.store)?;
            let missing = self.missing()?;
            if missing.is_empty() {
                break;
            }
            if fruitless == FRUITLESS {
                progress.end();
                return Err(self.error("sbatch", format!(
                    "{} tasks have no result after their jobs were handed in {FRUITLESS} times; logs are in {}",
                    missing.len(),
                    self.directory.display()
                )));
            }
            let (jobs, refused) = self.hand_in(&missing, progress)?;
            handed.rounds += 1;
            let tasks: usize = jobs.iter().map(|job| job.tasks.len()).sum();
            progress.note(&format!("handed to Slurm: {tasks} tasks in {} arrays", jobs.len()));
            if let Some(refused) = refused {
                progress.note(&format!("warning: {refused}; the other tasks follow when these have ended"));
            }
            let waited = self.wait(&jobs, progress);
            handed.jobs.extend(jobs.iter().map(|job| job.id.clone()));
            if let Err(error) = waited {
                let _ = self.call("scancel", &jobs.iter().map(|job| job.id.as_str()).collect::<Vec<_>>());
                progress.end();
                return Err(error);
            }
            let more = turn::finished(self.store)?.difference(&before).count();
            fruitless = if more == 0 { fruitless + 1 } else { 0 };
        }
        progress.end();
        Ok(handed)
    }

    /// Tasks that can still be computed.
    fn missing(&self) -> Result<BTreeSet<Id>> {
        let (finished, mut over) = (turn::finished(self.store)?, turn::failed(self.store)?);
        let mut missing = BTreeSet::new();
        for task in self.plan.tasks.iter().filter(|task| !finished.contains(&task.id)) {
            match over.contains(&task.id) || task.needs.iter().any(|need| over.contains(need)) {
                true => drop(over.insert(task.id.clone())),
                false => drop(missing.insert(task.id.clone())),
            }
        }
        Ok(missing)
    }

    /// The arrays that Slurm took, and why it did not take the next one. Those that it took run, whatever happens to the others.
    fn hand_in(
        &self,
        missing: &BTreeSet<Id>,
        progress: &dyn Progress,
    ) -> Result<(Vec<JobArray>, Option<Error>)> {
        let arrays = arrays(self.plan, |task| missing.contains(&task.id));
        let mut jobs: Vec<JobArray> = Vec::with_capacity(arrays.len());
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
                Cores::All => arguments.push("--exclusive".into()),
                Cores::One => arguments.extend(["--ntasks=1".into(), "--cpus-per-task=1".into()]),
            }
            if !after.is_empty() {
                arguments.push(format!("--dependency=afterany:{}", after.join(":")));
            }
            arguments.extend(self.options.iter().cloned());
            arguments.push(script.display().to_string());
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            match self.patiently("sbatch", &arguments).and_then(|answer| self.id(&answer, progress)) {
                Ok(id) => jobs.push(JobArray { id, tasks: array.tasks.clone() }),
                Err(error @ Error::Slurm { .. }) if !jobs.is_empty() => return Ok((jobs, Some(error))),
                Err(error) => {
                    if let [_, ..] = jobs[..] {
                        let ids: Vec<&str> = jobs.iter().map(|job| job.id.as_str()).collect();
                        let _ = self.call("scancel", &ids);
                    }
                    return Err(error);
                }
            }
        }
        Ok((jobs, None))
    }

    /// The id of an array that sbatch made: `103`, or `103;cluster`, the last such line of what it printed. What the site's plugins have
    /// to say beside it goes to the user.
    fn id(&self, answer: &Answer, progress: &dyn Progress) -> Result<String> {
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

    /// What a node runs.
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

    /// Waits until Slurm has none of these jobs any more, or everything is there.
    fn wait(&self, jobs: &[JobArray], progress: &dyn Progress) -> Result<()> {
        let ids: Vec<&str> = jobs.iter().map(|job| job.id.as_str()).collect();
        let list = format!("--jobs={}", ids.join(","));
        let mut away = false;
        let mut lives = BTreeMap::new();
        loop {
            let until = Instant::now() + self.look;
            while Instant::now() < until {
                interrupt::check()?;
                std::thread::sleep(Duration::from_millis(50).min(self.look));
            }
            progress.at((self.plan.tasks.len() - self.missing()?.len()) as u64);
            if self.missing()?.is_empty() {
                // Elements that were lost, and whose tasks others finished.
                let _ = self.call("scancel", &ids);
                return Ok(());
            }
            match self.call("squeue", &["--noheader", "--array", "--format=%i %T %r", &list]) {
                Ok(Answer { output, .. }) if output.trim().is_empty() => return Ok(()),
                Ok(Answer { output, .. }) => {
                    away = false;
                    for element in self.dead(&output, jobs, &mut lives)? {
                        progress
                            .note(&format!("job {element} is lost: it is cancelled, and handed in again"));
                        let _ = self.call("scancel", &[&element]);
                    }
                }
                // It forgets jobs after a while (MinJobAge).
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

    /// Elements that run, as Slurm says, and of whose tasks nothing has changed for too long; and those that no node could start,
    /// which Slurm holds for good.
    fn dead(&self, said: &str, jobs: &[JobArray], lives: &mut Lives) -> Result<Vec<String>> {
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
                lives.entry(element.clone()).or_insert_with(|| (life.clone(), Instant::now()));
            if *known != life {
                (*known, *since) = (life, Instant::now());
            } else if since.elapsed() > self.patience {
                dead.push(element.clone());
            }
        }
        lives.retain(|element, _| seen.contains(element));
        Ok(dead)
    }

    /// A program of Slurm; while its controller is away, again.
    fn patiently(&self, program: &str, arguments: &[&str]) -> Result<Answer> {
        let mut tries = 0;
        loop {
            match self.call(program, arguments) {
                Err(Error::Slurm { message, .. }) if tries < 60 && is_away(&message) => {
                    tries += 1;
                    interrupt::check()?;
                    std::thread::sleep(Duration::from_secs(1));
                }
                other => return other,
            }
        }
    }

    fn call(&self, program: &str, arguments: &[&str]) -> Result<Answer> {
        let mut command = Command::new(program);
        command.args(arguments).env("LC_ALL", "C");
        let (end, [output, errors]) = Job::new(command).time_limit(PATIENCE).outputs()?;
        if end.success() {
            return Ok(Answer { output, errors });
        }
        let last = |text: &str| text.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned);
        let reason = match end {
            JobEnd::TimedOut => format!("it did not answer within {} s", PATIENCE.as_secs()),
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

/// What a program of Slurm printed.
struct Answer {
    output: String,
    errors: String,
}

/// The number of a job in a line of `sbatch --parsable`.
fn job_id(line: &str) -> Option<&str> {
    let id = line.split(';').next()?.trim();
    (!id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit())).then_some(id)
}

/// Whether the controller may come back.
fn is_away(message: &str) -> bool {
    ["Unable to contact slurm controller", "Socket timed out", "Connection refused"]
        .iter()
        .any(|words| message.contains(words))
}

/// A word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Where the logs of a plan's jobs are, below a shared directory.
pub fn directory(shared: &Path, plan: &str) -> PathBuf {
    shared.join("slurm").join(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KernelRef, SourceRef, What};

    fn plan(kernels: usize, workloads: usize) -> Plan {
        let model = kerntune_tune::model::find("generic").unwrap();
        let mut plan = Plan::new("test".into(), &model);
        let builds: Vec<Id> = (0..kernels)
            .map(|number| {
                let what = What::Build {
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
                let what = What::Measure { kernel, workload: format!("w{number}"), run };
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
        assert_eq!((arrays[0].tasks.len(), arrays[0].cores), (20, Cores::All));
        for (number, array) in arrays[1..].iter().enumerate() {
            assert_eq!((array.tasks.len(), array.after.as_slice()), (50, &[(0, number)][..]));
        }
        // What is there is not waited for.
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
