//! A session on a file: every step in its order, and what becomes of the content after signals, panics and errors.

use std::cell::Cell;
use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use emmc_linux::block_io::{BlockIo, EngineChoice, Opening, TargetHandle};
use emmc_linux::session::{End, Keep, Restore, Session, SessionError, State};
use emmc_port::{BlockOp, BlockRequest, BlockTarget};
use emmc_workload::Unwatched;

const BYTES: u64 = 3 << 20;
/// What the tests overwrite.
const RANGE: [u64; 2] = [4096, 2 << 20];

/// The steps until the work.
const STEPS: [(State, Step); 4] = [
    (State::Placed, Step::Check),
    (State::Checked, Step::Consent),
    (State::Consented, Step::Hold),
    (State::Held, Step::Save),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Check,
    Consent,
    Hold,
    Save,
}

/// A file with content, and the flag of a signal.
struct Case {
    folder: tempfile::TempDir,
    before: Vec<u8>,
    stop: Arc<AtomicBool>,
}

impl Case {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let before: Vec<u8> = (0..BYTES).map(|at| (at >> 9) as u8 ^ at as u8).collect();
        std::fs::write(folder.path().join("file"), &before).unwrap();
        Self { folder, before, stop: Arc::default() }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("file")
    }

    fn kept(&self) -> PathBuf {
        self.folder.path().join("kept")
    }

    fn session(&self) -> Session {
        Session::place(&self.file(), "it", &self.stop).unwrap().unwrap()
    }

    /// The steps before the work, the content kept in a file.
    fn saved(&self) -> Session {
        let mut session = self.session();
        for (_, step) in STEPS {
            self.step(&mut session, step).unwrap();
        }
        assert_eq!(session.state(), State::Saved);
        session
    }

    fn opening(&self) -> Opening {
        let stop = Arc::clone(&self.stop);
        Opening { engine: EngineChoice::Pread, write: true, flush_all: false, seed: 7, stop }
    }

    fn step(&self, session: &mut Session, step: Step) -> Result<(), SessionError> {
        match step {
            Step::Check => session.check().map(drop),
            Step::Consent => session.consent(RANGE, |_| Ok(())),
            Step::Hold => session.hold(&self.opening()).map(drop),
            Step::Save => session.save(RANGE, Keep::File(&self.kept()), &mut Unwatched).map(drop),
        }
    }

    fn is_as_before(&self) -> bool {
        std::fs::read(self.file()).unwrap() == self.before
    }

    /// Nothing but the file: no saved content, no temporary names.
    fn is_alone(&self) -> bool {
        std::fs::read_dir(self.folder.path()).unwrap().count() == 1
    }
}

/// Overwrites all of the range.
fn spoil(mut target: BlockIo, _: &TargetHandle) {
    let [from, to] = RANGE;
    let request = BlockRequest { op: BlockOp::Write, offset_bytes: from, bytes: to - from, through: false, tag: 0 };
    target.submit(request).and_then(|()| target.wait()).unwrap();
}

#[test]
fn every_step_out_of_order_is_refused() {
    let case = Case::new();
    for done in 0..=STEPS.len() {
        for (at, (_, step)) in STEPS.into_iter().enumerate().filter(|(at, _)| *at != done) {
            let mut session = case.session();
            STEPS[..done].iter().for_each(|(_, step)| case.step(&mut session, *step).unwrap());
            let state = session.state();
            let error = case.step(&mut session, step).unwrap_err();
            assert!(matches!(error, SessionError::OutOfOrder { .. }), "{at} after {done}: {error}");
            assert!(error.to_string().ends_with("nothing was written"), "{error}");
            // It is no end: the right step still follows.
            assert_eq!(session.state(), state);
            STEPS[done..].iter().for_each(|(_, step)| case.step(&mut session, *step).unwrap());
        }
    }
    for done in 0..STEPS.len() {
        let mut session = case.session();
        STEPS[..done].iter().for_each(|(_, step)| case.step(&mut session, *step).unwrap());
        let error = session.overwrite(spoil, &mut Unwatched).map(drop).unwrap_err();
        assert!(matches!(error, SessionError::OutOfOrder { .. }), "after {done}: {error}");
    }
    assert!(case.is_as_before() && case.is_alone());
}

#[test]
fn a_signal_before_each_step_ends_it_with_nothing_written() {
    for done in 0..=STEPS.len() {
        let case = Case::new();
        let mut session = case.session();
        STEPS[..done].iter().for_each(|(_, step)| case.step(&mut session, *step).unwrap());
        case.stop.store(true, Ordering::Relaxed);
        let error = match STEPS.get(done) {
            Some((state, step)) => {
                assert_eq!(session.state(), *state);
                let error = case.step(&mut session, *step).unwrap_err();
                assert_eq!(session.state(), State::Done(End::Unwritten));
                for (_, step) in STEPS {
                    let error = case.step(&mut session, step).unwrap_err();
                    assert!(matches!(error, SessionError::OutOfOrder { .. }), "{error}");
                }
                error
            }
            None => session.overwrite(spoil, &mut Unwatched).map(drop).unwrap_err(),
        };
        assert_eq!(error.to_string(), "it: stopped by a signal; nothing was written", "after {done}");
        assert!(case.is_as_before() && case.is_alone(), "after {done}");
    }
}

#[test]
fn a_signal_during_the_question_or_the_work_is_followed() {
    let case = Case::new();
    let mut session = case.session();
    session.check().unwrap();
    let signal = |_: &_| {
        case.stop.store(true, Ordering::Relaxed);
        Ok(())
    };
    session.consent(RANGE, signal).unwrap();
    assert!(session.hold(&case.opening()).is_err() && case.is_as_before());
    case.stop.store(false, Ordering::Relaxed);
    let work = |target: BlockIo, held: &TargetHandle| {
        spoil(target, held);
        case.stop.store(true, Ordering::Relaxed);
    };
    let done = case.saved().overwrite(work, &mut Unwatched).unwrap();
    assert_eq!(done.restore.end(), End::Restored, "nothing stops a restore");
    assert!(case.is_as_before() && case.is_alone());
}

#[test]
fn content_is_restored_after_the_work_and_after_its_panic() {
    for keep_in_file in [true, false] {
        for panics in [false, true] {
            let case = Case::new();
            let mut session = case.session();
            STEPS[..3].iter().for_each(|(_, step)| case.step(&mut session, *step).unwrap());
            let kept = case.kept();
            let keep = if keep_in_file { Keep::File(&kept) } else { Keep::Memory };
            assert_eq!(session.save(RANGE, keep, &mut Unwatched), Ok(RANGE[1] - RANGE[0]));
            let work = |target: BlockIo, held: &TargetHandle| {
                spoil(target, held);
                assert!(!case.is_as_before() && kept.exists() == keep_in_file);
                if panics {
                    std::panic::resume_unwind(Box::new("of the work"));
                }
            };
            let done = session.overwrite(work, &mut Unwatched).unwrap();
            assert_eq!((done.result.is_err(), &done.restore), (panics, &Restore::Whole(RANGE[1] - RANGE[0])));
            assert!(case.is_as_before() && case.is_alone(), "{keep_in_file} {panics}");
        }
    }
}

#[test]
fn what_the_work_made_is_gone_before_the_restore() {
    /// Writes when it is dropped, as a filesystem does that is unmounted.
    struct Late(File);

    impl Drop for Late {
        fn drop(&mut self) {
            self.0.write_all_at(&[9; 8192], RANGE[0]).unwrap();
        }
    }

    for panics in [false, true] {
        let case = Case::new();
        let session = case.saved();
        let work = |target: BlockIo, held: &TargetHandle| {
            let _late = Late(File::options().write(true).open(case.file()).unwrap());
            spoil(target, held);
            if panics {
                std::panic::resume_unwind(Box::new("of the work"));
            }
        };
        let done = session.overwrite(work, &mut Unwatched).unwrap();
        assert!(done.restore.end() == End::Restored && case.is_as_before(), "{panics}");
    }
}

#[test]
fn a_restore_that_fails_leaves_the_saved_content() {
    let case = Case::new();
    let work = |target: BlockIo, held: &TargetHandle| {
        spoil(target, held);
        // The second megabyte of what was saved is gone.
        File::options().write(true).open(case.kept()).unwrap().set_len(4096 + (1 << 20)).unwrap();
    };
    let done = case.saved().overwrite(work, &mut Unwatched).unwrap();
    assert_eq!(done.restore.end(), End::Lost);
    let Restore::Lost(error) = done.restore else { panic!("{:?}", done.restore) };
    let error = error.to_string();
    assert!(error.contains("bytes 1052672 to 2097152: ") && error.contains(case.kept().to_str().unwrap()), "{error}");
    assert!(case.kept().exists() && !case.is_as_before());
    let after = std::fs::read(case.file()).unwrap();
    assert!(after[..1 << 20] == case.before[..1 << 20], "the rest is restored");
}

#[test]
fn nothing_saved_means_nothing_restored() {
    let case = Case::new();
    let mut session = case.session();
    STEPS[..3].iter().for_each(|(_, step)| case.step(&mut session, *step).unwrap());
    assert_eq!(session.save(RANGE, Keep::Nowhere, &mut Unwatched), Ok(0));
    let done = session.overwrite(spoil, &mut Unwatched).unwrap();
    assert!(done.result.is_ok() && done.restore.end() == End::Written && !case.is_as_before());
}

#[test]
fn refusals_end_it_with_nothing_written() {
    let case = Case::new();
    let refused = |session: &Session, result: Result<(), SessionError>, says: &str| {
        let Err(SessionError::Refused(why)) = result else { panic!("{result:?}") };
        assert!(why.contains(says), "{why}");
        assert_eq!(session.state(), State::Done(End::Unwritten));
        assert!(case.is_as_before() && case.is_alone());
    };
    // The user declines.
    let mut session = case.session();
    session.check().unwrap();
    let declined = session.consent(RANGE, |_| Err("no".into()));
    refused(&session, declined, "no");
    // Another session holds the file.
    let mut first = case.session();
    STEPS[..3].iter().for_each(|(_, step)| case.step(&mut first, *step).unwrap());
    let mut second = case.session();
    let result = STEPS[..3].iter().try_for_each(|(_, step)| case.step(&mut second, *step));
    refused(&second, result, "in use");
    // More than the user agreed to.
    let result = first.save([0, RANGE[1]], Keep::File(&case.kept()), &mut Unwatched).map(drop);
    refused(&first, result, "changed before the confirmation: nothing was written");
    // Dropped with saved content: all of it is still on the target.
    let session = case.saved();
    assert!(!case.is_alone());
    drop(session);
    assert!(case.is_as_before() && case.is_alone());
}

/// What a caller and the world can do, before the work is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Act {
    Step(usize),
    Signal,
}

/// Every beginning of the right order, with up to `more` acts of any kind at any place.
fn sequences(more: usize) -> HashSet<Vec<Act>> {
    let right = |length| (0..length).map(Act::Step).collect();
    let mut all: HashSet<Vec<Act>> = (0..=STEPS.len()).map(right).collect();
    for _ in 0..more {
        let acts = || (0..STEPS.len()).map(Act::Step).chain([Act::Signal]);
        let longer = all.iter().flat_map(|sequence| {
            (0..=sequence.len())
                .flat_map(move |at| acts().map(move |act| [&sequence[..at], &[act], &sequence[at..]].concat()))
        });
        all = longer.collect::<Vec<_>>().into_iter().chain(all.iter().cloned()).collect();
    }
    all
}

/// The rules in other words than the session's: only the next right step does anything, and none after a signal.
#[test]
fn no_sequence_of_steps_and_signals_loses_content() {
    let case = Case::new();
    let sequences = sequences(2);
    assert!(sequences.len() > 500, "{}", sequences.len());
    let mut overwritten = 0;
    for sequence in sequences {
        case.stop.store(false, Ordering::Relaxed);
        let (mut session, mut next, mut is_signalled, mut has_ended) = (case.session(), 0, false, false);
        for act in &sequence {
            let Act::Step(step) = *act else {
                case.stop.store(true, Ordering::Relaxed);
                is_signalled = true;
                continue;
            };
            let result = case.step(&mut session, STEPS[step].1);
            let is_next = !has_ended && step == next;
            match result {
                Ok(()) => {
                    assert!(is_next && !is_signalled, "{sequence:?}");
                    next += 1;
                }
                Err(SessionError::OutOfOrder { .. }) => assert!(!is_next, "{sequence:?}"),
                Err(error) => {
                    assert!(is_next && is_signalled, "{sequence:?}: {error}");
                    has_ended = true;
                }
            }
        }
        let is_spoilt = Cell::new(false);
        let work = |target: BlockIo, held: &TargetHandle| {
            spoil(target, held);
            is_spoilt.set(!case.is_as_before());
        };
        let done = session.overwrite(work, &mut Unwatched).map(|done| done.restore.end());
        let may = next == STEPS.len() && !is_signalled;
        assert_eq!((done.ok(), is_spoilt.get()), (may.then_some(End::Restored), may), "{sequence:?}");
        assert!(case.is_as_before() && case.is_alone(), "{sequence:?}");
        overwritten += u32::from(may);
    }
    assert!(overwritten > 10, "{overwritten}");
}

/// Only `force_ro` is unlocked: another device that is read-only is refused where it would be opened for writing.
#[test]
fn a_device_that_is_read_only_without_force_ro_is_never_unlocked() {
    let case = Case::new();
    let attached = Command::new("losetup").args(["--find", "--show", "--read-only"]).arg(case.file()).output();
    let Some(attached) = attached.ok().filter(|output| output.status.success()) else {
        return eprintln!("SKIPPED: loop devices need root and losetup");
    };
    let device = String::from_utf8(attached.stdout).unwrap().trim().to_owned();
    let place = || Session::place(Path::new(&device), "it", &case.stop).unwrap().unwrap();
    let refused = place().check().map(drop);
    let mut session = place().unlocking();
    let consented = session.check().map(drop).and_then(|()| session.consent([0, BYTES], |_| Ok(())));
    let held = session.hold(&case.opening()).map(drop);
    let state = session.state();
    drop(session);
    assert!(Command::new("losetup").args(["--detach", &device]).status().unwrap().success());
    assert!(matches!(&refused, Err(SessionError::Refused(why)) if why.ends_with("is read-only")), "{refused:?}");
    assert_eq!(consented, Ok(()));
    assert!(held.is_err() && state != State::Held, "{held:?} {state:?}");
    assert_eq!(std::fs::read(case.file()).unwrap(), case.before);
}
