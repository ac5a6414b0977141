//! The combinations of a sweep.

use std::collections::BTreeMap;

use anyhow::ensure;
use clap::ValueEnum;
use serde::Serialize;

use super::run;
use crate::cli::{ControllerArg, DmaArg, FilesystemArg, LabRunArgs, LabSweepArgs};

/// The settings of a run; absent: the kernel's own, or one that the run does not have.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Settings {
    /// The card, as named.
    card: String,
    /// The filesystem on it.
    filesystem: Option<&'static str>,
    /// Options of mkfs.
    mkfs: Option<String>,
    /// Options of mount.
    mount: Option<String>,
    /// Commit interval. Unit: seconds.
    commit_s: Option<u32>,
    /// Scheduler of the block layer.
    scheduler: Option<String>,
    /// Unit: KiB.
    read_ahead_kib: Option<u32>,
    /// The largest request. Unit: KiB.
    max_request_kib: Option<u64>,
    /// `cqe` or `no-cqe`.
    controller: String,
    /// `adma` or `sdma`; absent with command queueing.
    dma: Option<String>,
    /// The processor's time for an instruction. Unit: ns.
    cpu_ns: f64,
    /// Variables of the script.
    env: BTreeMap<String, String>,
}

/// One combination.
pub(super) struct Cell {
    pub(super) settings: Settings,
    pub(super) args: LabRunArgs,
}

impl Settings {
    fn of(args: &LabRunArgs, mount: Option<&String>, commit: Option<u32>) -> Self {
        Self {
            card: args.card.clone(),
            filesystem: args.filesystem.map(FilesystemArg::name),
            mkfs: args.mkfs.clone(),
            mount: mount.cloned(),
            commit_s: commit,
            scheduler: args.scheduler.clone(),
            read_ahead_kib: args.read_ahead,
            max_request_kib: args.max_request.map(|size| size.0 / 1024),
            controller: value_name(args.controller),
            dma: (args.controller != ControllerArg::Cqe).then(|| value_name(args.dma)),
            cpu_ns: args.cpu_ns,
            env: args.env.iter().cloned().collect(),
        }
    }

    /// Each setting as text, by name; `-`: it has none.
    pub(super) fn texts(&self) -> Vec<(String, String)> {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".into());
        let number = |value: Option<u64>| value.map_or_else(|| "-".into(), |value| value.to_string());
        let mut texts: Vec<(String, String)> = [
            ("card", self.card.clone()),
            ("filesystem", self.filesystem.unwrap_or("-").into()),
            ("mkfs", text(&self.mkfs)),
            ("mount", text(&self.mount)),
            ("commit s", number(self.commit_s.map(u64::from))),
            ("scheduler", text(&self.scheduler)),
            ("read-ahead KiB", number(self.read_ahead_kib.map(u64::from))),
            ("max request KiB", number(self.max_request_kib)),
            ("controller", self.controller.clone()),
            ("dma", text(&self.dma)),
            ("cpu ns", self.cpu_ns.to_string()),
        ]
        .map(|(name, text): (&str, String)| (name.to_owned(), text))
        .into();
        texts.extend(self.env.iter().map(|(name, value)| (name.clone(), value.clone())));
        texts
    }
}

fn value_name(value: impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// The names of the settings that differ between cells.
pub(super) fn axes(cells: &[Cell]) -> Vec<String> {
    let all: Vec<_> = cells.iter().map(|cell| cell.settings.texts()).collect();
    let Some(first) = all.first() else { return Vec::new() };
    let differs = |number: &usize| all.iter().any(|texts| texts[*number].1 != first[*number].1);
    (0..first.len()).filter(differs).map(|number| first[number].0.clone()).collect()
}

/// The values of an option, or one absent value.
fn values<T: Clone>(given: &[T]) -> Vec<Option<T>> {
    if given.is_empty() { vec![None] } else { given.iter().cloned().map(Some).collect() }
}

/// The same, where the option has a meaning.
fn values_if<T: Clone>(has: bool, given: &[T]) -> Vec<Option<T>> {
    if has { values(given) } else { vec![None] }
}

/// All combinations, the last option varies fastest. A setting is left out where it has no meaning: those of
/// filesystems without one, the commit interval but in ext4, SDMA with command queueing.
///
/// Errors: a setting has a meaning nowhere; a combination cannot run.
pub(super) fn cells(args: &LabSweepArgs) -> anyhow::Result<Vec<Cell>> {
    let filesystems = if args.filesystem.is_empty() { vec![None] } else { args.filesystem.clone() };
    let controllers = if args.controller.is_empty() { vec![ControllerArg::Cqe] } else { args.controller.clone() };
    let has_filesystem = filesystems.iter().any(Option::is_some);
    ensure!(has_filesystem || args.mkfs.is_empty(), "--mkfs: expected --filesystem with it");
    ensure!(has_filesystem || args.mount.is_empty(), "--mount: expected --filesystem with it");
    let has_ext4 = filesystems.contains(&Some(FilesystemArg::Ext4));
    ensure!(has_ext4 || args.commit.is_empty(), "--commit: expected --filesystem ext4 with it");
    let has_dma = controllers.iter().any(|controller| *controller != ControllerArg::Cqe);
    ensure!(has_dma || args.dma.is_empty(), "--dma: expected --controller no-cqe with it");
    let variables = variables(&args.env);
    let mut cells = Vec::new();
    for card in &args.card {
        for filesystem in &filesystems {
            let (is_some, is_ext4) = (filesystem.is_some(), *filesystem == Some(FilesystemArg::Ext4));
            for mkfs in values_if(is_some, &args.mkfs) {
                for mount in values_if(is_some, &args.mount) {
                    for commit in values_if(is_ext4, &args.commit) {
                        let option = commit.map(|seconds| format!("commit={seconds}"));
                        let options: Vec<String> = mount.iter().cloned().chain(option).collect();
                        let base = LabRunArgs {
                            card: card.clone(),
                            machine: args.machine.clone(),
                            env: Vec::new(),
                            filesystem: *filesystem,
                            mkfs: mkfs.clone(),
                            mount: (!options.is_empty()).then(|| options.join(",")),
                            scheduler: None,
                            read_ahead: None,
                            max_request: None,
                            controller: ControllerArg::Cqe,
                            dma: DmaArg::Adma,
                            cpu_ns: 0.0,
                            out: None,
                            requests: None,
                            accesses: None,
                            trace: None,
                        };
                        for run in machines(args, &controllers, &variables, &base) {
                            run::check(&run)?;
                            cells.push(Cell { settings: Settings::of(&run, mount.as_ref(), commit), args: run });
                        }
                    }
                }
            }
        }
    }
    Ok(cells)
}

/// The combinations of what is not the filesystem's.
fn machines(
    args: &LabSweepArgs,
    controllers: &[ControllerArg],
    variables: &[Vec<(String, String)>],
    base: &LabRunArgs,
) -> Vec<LabRunArgs> {
    let mut runs = Vec::new();
    for scheduler in values(&args.scheduler) {
        for read_ahead in values(&args.read_ahead) {
            for max_request in values(&args.max_request) {
                for &controller in controllers {
                    for dma in values_if(controller != ControllerArg::Cqe, &args.dma) {
                        for cpu_ns in values(&args.cpu_ns) {
                            for env in variables {
                                runs.push(LabRunArgs {
                                    scheduler: scheduler.clone(),
                                    read_ahead,
                                    max_request,
                                    controller,
                                    dma: dma.unwrap_or(DmaArg::Adma),
                                    cpu_ns: cpu_ns.unwrap_or(0.0),
                                    env: env.clone(),
                                    ..base.clone()
                                });
                            }
                        }
                    }
                }
            }
        }
    }
    runs
}

/// The combinations of variables: values of one name are alternatives.
fn variables(given: &[(String, String)]) -> Vec<Vec<(String, String)>> {
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in given {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.into_iter().fold(vec![Vec::new()], |all, name| {
        let values: Vec<_> = given.iter().filter(|(other, _)| other == name).collect();
        let with = |before: &Vec<(String, String)>| {
            let before = before.clone();
            values.iter().map(move |value| [before.as_slice(), &[(*value).clone()]].concat()).collect::<Vec<_>>()
        };
        all.iter().flat_map(with).collect()
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Sweep {
        #[command(flatten)]
        args: LabSweepArgs,
    }

    fn swept(words: &str) -> anyhow::Result<Vec<Cell>> {
        let words = "x --card generic-8g --script s ".to_owned() + words;
        cells(&Sweep::try_parse_from(words.split_whitespace())?.args)
    }

    #[test]
    fn settings_are_combined_where_they_have_a_meaning() {
        let cells = swept("--env A=1 --env B=x --env A=2 --scheduler none --scheduler bfq").unwrap();
        let texts = |cell: &Cell| format!("{:?} {:?}", cell.args.scheduler.as_ref().unwrap(), cell.args.env);
        assert_eq!(cells.len(), 4);
        assert_eq!(texts(&cells[1]), r#""none" [("A", "2"), ("B", "x")]"#);
        assert_eq!(axes(&cells), ["scheduler", "A"]);

        let cells = swept("--filesystem none --filesystem ext4 --filesystem f2fs --mount noatime --mount nobarrier --commit 5 --commit 9").unwrap();
        let mounts: Vec<_> = cells.iter().map(|cell| cell.args.mount.clone().unwrap_or_default()).collect();
        let ext4 = ["noatime,commit=5", "noatime,commit=9", "nobarrier,commit=5", "nobarrier,commit=9"];
        assert_eq!(mounts, [&[""], &ext4[..], &["noatime", "nobarrier"]].concat());
        assert_eq!(axes(&cells), ["filesystem", "mount", "commit s"]);

        let cells = swept("--controller cqe --controller no-cqe --dma adma --dma sdma --cpu-ns 0 --cpu-ns 4").unwrap();
        assert_eq!(cells.len(), 6);
    }

    #[test]
    fn settings_without_a_meaning_are_refused() {
        for (words, part) in [
            ("--mount noatime", "--mount: expected --filesystem"),
            ("--filesystem none --mkfs -O", "--mkfs: expected --filesystem"),
            ("--filesystem f2fs --commit 5", "--commit: expected --filesystem ext4"),
            ("--dma sdma", "--dma: expected --controller no-cqe"),
            ("--controller hs200", "INTx"),
            ("--cpu-ns -1", "expected"),
            ("--max-request 1s", "whole KiB"),
            ("--filesystem xfs", "expected ext4, f2fs or none"),
            ("--commit 0", "0 is not in"),
        ] {
            let error = swept(words).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(part), "{words}: {error}");
        }
    }
}
