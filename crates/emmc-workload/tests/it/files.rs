//! Suites on files, on models of filesystems above a virtual card, with known results.

use crate::cards::{card, figure, told};
use emmc_port::{BlockTarget, FilePlace, FilesystemError, NewFilesystem, TreeWork};
use emmc_sim::SimTarget;
use emmc_units::Instant;
use emmc_workload::fs::{Disk, Ext4, F2fs, Filesystem, ModelTree, MountOptions};
use emmc_workload::{BenchError, FileBench, FileShape, Options, Outcome, Progress, Unwatched, Watch, on_files};

const WORK: [&str; 6] = ["write", "read", "random write", "random read", "create and sync", "delete"];

/// A card on which filesystems are created, except for those of some names.
struct Models {
    card: SimTarget,
    size_bytes: u64,
    missing: &'static [&'static str],
    made: Vec<String>,
}

impl Models {
    fn new(size_bytes: u64, missing: &'static [&'static str]) -> Self {
        Self { card: card("generic-8g", |_| ()), size_bytes, missing, made: Vec::new() }
    }

    fn shape(&self, is_device: bool) -> FileShape {
        FileShape { name: "models".into(), room_bytes: self.size_bytes, is_device, is_trimmed: is_device }
    }

    fn run(
        &mut self,
        suite: &str,
        is_device: bool,
        options: &Options,
        watch: &mut dyn Watch,
    ) -> Result<Outcome, BenchError> {
        let shape = self.shape(is_device);
        FileBench::run((suite, on_files(suite).unwrap().0), shape, self, options, watch)
    }
}

impl FilePlace for Models {
    fn name(&self) -> &str {
        "models"
    }

    fn now(&mut self) -> Instant {
        self.card.now()
    }

    fn with(&mut self, new: Option<NewFilesystem<'_>>, work: TreeWork<'_>) -> Result<(), FilesystemError> {
        let fstype = new.map_or("ext4", |new| new.fstype);
        if self.missing.contains(&fstype) {
            return Err(FilesystemError::Missing { what: format!("no {fstype} here") });
        }
        self.made.push(new.map_or(String::new(), |new| format!("{fstype} {}", new.options)));
        let mut nobody = Unwatched;
        let mut disk = Disk::new(&mut self.card, &mut nobody, 0, self.size_bytes);
        let options = MountOptions::default();
        let filesystem: Box<dyn Filesystem> = match fstype {
            "f2fs" => Box::new(F2fs::make(&mut disk, options).unwrap()),
            _ => Box::new(Ext4::make(&mut disk, options).unwrap()),
        };
        Ok(work(&mut ModelTree::new(&mut disk, filesystem))?)
    }
}

/// Stops at a step.
struct StopsAt(&'static str);

impl Watch for StopsAt {
    fn progress(&mut self, progress: Progress<'_>) -> bool {
        assert!((1..=progress.steps).contains(&progress.number), "{progress:?}");
        progress.step != self.0
    }
}

/// The values of a column, by the row.
fn column(outcome: &Outcome, name: &str) -> Vec<Option<f64>> {
    let [grid] = &outcome.grids[..] else { panic!("{:?}", outcome.grids) };
    let rows: Vec<&str> = grid.lines.iter().map(|line| line.row.as_str()).collect();
    assert_eq!(rows, WORK);
    rows.iter().map(|row| grid.value(row, name)).collect()
}

#[test]
fn an_installation_through_files_equals_the_one_through_requests() {
    let mut models = Models::new(2 << 30, &[]);
    let files = models.run("install", false, &Options::default(), &mut Unwatched).unwrap();
    let requests = told("install", &mut card("generic-8g", |_| ()), &Options::default());
    for name in ["installation", "waiting for the card", "of that in syncs"] {
        assert_eq!(figure(&files, name), figure(&requests, name), "{name}");
    }
    // What files take, without journal and tables.
    assert!(files.written_bytes < requests.written_bytes && files.written_bytes > requests.written_bytes / 2);
}

#[test]
fn every_set_of_options_is_a_column_of_each_filesystem() {
    let mut models = Models::new(256 << 20, &[]);
    let rows = ["default", "discard+commit=30"].map(String::from).to_vec();
    let outcome = models.run("fs", true, &Options { rows, ..Options::default() }, &mut Unwatched).unwrap();
    assert_eq!(models.made, ["ext4 ", "f2fs ", "ext4 discard,commit=30", "f2fs discard"]);
    for name in ["ext4", "f2fs", "ext4 discard+commit=30", "f2fs discard+commit=30"] {
        assert!(column(&outcome, name).iter().all(Option::is_some), "{name}");
    }
    assert!(
        outcome.remarks.iter().any(|remark| remark.contains("f2fs has no commit= option")),
        "{:?}",
        outcome.remarks
    );
    assert_eq!((outcome.state_before.kind.word(), outcome.state_before.of_share), ("trimmed", Some(1.0)));
    let bad = Options { rows: vec!["noatime".into()], ..Options::default() };
    let error = models.run("fs", true, &bad, &mut Unwatched).unwrap_err().to_string();
    assert!(error.contains("\"noatime\": expected mount options"), "{error}");
}

#[test]
fn a_missing_filesystem_is_reported_and_the_other_measured() {
    let outcome = Models::new(256 << 20, &["f2fs"]).run("fs", true, &Options::default(), &mut Unwatched).unwrap();
    assert!(column(&outcome, "ext4").iter().all(Option::is_some));
    assert_eq!(column(&outcome, "f2fs"), [None; 6]);
    assert_eq!(column(&outcome, "f2fs over ext4"), [None; 6]);
    assert_eq!((outcome.remarks[0].as_str(), outcome.ended_early), ("f2fs is not measured: no f2fs here", None));
    let error = Models::new(256 << 20, &["ext4", "f2fs"]).run("fs", true, &Options::default(), &mut Unwatched);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("no ext4 here") && error.contains("no f2fs here"), "{error}");
}

#[test]
fn measurements_before_a_stop_are_reported() {
    let mut stops = StopsAt("f2fs random write");
    let outcome = Models::new(256 << 20, &[]).run("fs", true, &Options::default(), &mut stops).unwrap();
    assert!(column(&outcome, "ext4").iter().all(Option::is_some));
    let measured: Vec<bool> = column(&outcome, "f2fs").iter().map(Option::is_some).collect();
    assert_eq!(measured, [true, true, false, false, false, false]);
    assert_eq!(outcome.ended_early.as_deref(), Some("models: stopped"));
    let nothing =
        Models::new(2 << 30, &[]).run("install", false, &Options::default(), &mut StopsAt("package 3 of 250"));
    assert_eq!(nothing.unwrap_err().to_string(), "models: stopped");
}

#[test]
fn six_phases_of_bonnie_are_counted_twice() {
    let outcome = Models::new(1 << 30, &[]).run("bonnie", false, &Options::default(), &mut Unwatched).unwrap();
    let [characters, grid] = &outcome.grids[..] else { panic!("{:?}", outcome.grids) };
    let at = |row: &str, column: &str| characters.value(row, column);
    assert_eq!((characters.columns.len(), at("as bonnie++", "char out")), (2, None), "a model has no processor");
    assert!(at("on the card", "char out").unwrap() > 0.0 && at("on the card", "char in").unwrap() > 0.0);
    for phase in ["sequential create", "sequential delete", "random create", "random delete"] {
        let [fast, synced] = ["as bonnie++", "on the card"].map(|row| grid.value(row, phase).unwrap());
        assert!(synced <= fast && synced > 0.0, "{phase}: {synced} of {fast}");
    }
    // A model cannot forget folders and inodes.
    assert_eq!(grid.value("on the card", "random stat"), None);
    assert!(outcome.remarks.iter().any(|remark| remark.contains("requires root")), "{:?}", outcome.remarks);
}

#[test]
fn a_suite_that_does_not_fit_reports_the_available_space() {
    let check = |suite, is_device, options: Options, says: &str| {
        let error =
            Models::new(100 << 20, &[]).run(suite, is_device, &options, &mut Unwatched).unwrap_err().to_string();
        assert!(error.contains(says), "{suite}: {error}");
    };
    let sized = |bytes| Options { size_bytes: Some(bytes), ..Options::default() };
    check("fs", true, Options::default(), "it needs 128 MiB; models has 100 MiB");
    check("fs", true, sized((128 << 20) + 1), "--size 128.0 MiB (134217729 bytes): expected a multiple of 4 KiB");
    check("fs", true, sized(1 << 20), "--size 1 MiB: at least 128 MiB are needed");
    check("boot", false, Options::default(), "models has room for 100 MiB");
    check("install", false, Options::default(), "it needs 512 MiB; models has room for 100 MiB");
    check("install", false, sized(1 << 30), "the size of the installation is fixed");
    check("fs", true, Options { from_bytes: 4096, ..Options::default() }, "starts at the start of its device");
    check("fs", true, Options { read_only: true, ..Options::default() }, "it must write");
}
