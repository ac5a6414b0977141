//! bonnie++'s files: created, looked up and deleted, sequentially and at random.
//!
//! 16384 empty files in one folder. Names are seven digits and up to twelve random letters and digits: digits first, so
//! that the folder is filled in its own order, or last. Sequential means: in the folder's listing order. Random
//! look-ups ask for the same number of files, some of them twice; random deletion visits them in another order.
//! Source: bonnie++'s documentation.
//!
//! bonnie++ stops its clock while everything is still in memory. The same run reports both: bonnie++'s figure, and the
//! time until the card has the data, or with empty caches.

use emmc_port::{FileNumber, FileOp, FileTree, TargetError};
use emmc_units::{Rng, Scramble};

use super::{NAME, characters};
use crate::drive::stream::BenchError;
use crate::result::Figure;
use crate::result::grid::{Grid, GridLine};
use crate::suites::files::{FileBench, FileShape, FileSuite, of_files, room};
use crate::suites::{Cost, Options};

const FILES: u32 = 16 << 10;
/// A file's inode, its entry and their journal blocks, at most. Unit: bytes.
const FILE_BYTES: u64 = 2048;
const PHASES: [&str; 6] =
    ["sequential create", "sequential stat", "sequential delete", "random create", "random stat", "random delete"];
/// The characters of names.
const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const LETTERS_MAX: u64 = 12;

/// The suite in a folder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RealBonnie;

/// Files a second: as bonnie++ counts, and with the rest of the work included.
type Rates = [Vec<Option<f64>>; 2];

impl FileSuite for RealBonnie {
    fn about(&self) -> &'static str {
        "output and input by character; files created, looked up and deleted"
    }

    fn cost(&self, shape: &FileShape, options: &Options) -> Result<Cost, BenchError> {
        // --size and --from belong to the other part.
        let options = Options { size_bytes: None, from_bytes: 0, ..options.clone() };
        let bytes = (u64::from(FILES) * FILE_BYTES).max(characters::BYTES);
        room(NAME, shape, &options, (bytes, bytes))?;
        Ok(Cost {
            written_bytes: characters::BYTES + 2 * u64::from(FILES) * FILE_BYTES,
            read_bytes: 2 * characters::BYTES,
            to_bytes: bytes,
            steps: (characters::STEPS.len() + PHASES.len()) as u32,
            ..Cost::default()
        })
    }

    fn run(&self, bench: &mut FileBench<'_>) -> Result<(), BenchError> {
        let (seed, mut rates, mut is_settled) = (bench.options.seed, Rates::default(), true);
        let mut by_character = None;
        let ended = bench.on_tree(None, &mut |tree| {
            by_character = Some(characters::measure(tree)?);
            let mut work = Work { tree, rng: Rng::new(seed), seed, rates: &mut rates, is_settled: true };
            let ended = work.in_order().and_then(|()| work.at_random());
            is_settled = work.is_settled;
            ended
        });
        by_character.into_iter().for_each(|grid| bench.grid(grid));
        let columns = PHASES.map(|phase| (phase, "/s"));
        let caption = "files a second; on the card: with a sync after it, or with empty caches before";
        let mut grid = Grid::new("bonnie++, files", "counted", &columns, caption);
        for (row, values) in ["as bonnie++", "on the card"].into_iter().zip(&rates) {
            let mut values = values.clone();
            values.resize(PHASES.len(), None);
            grid.lines.push(GridLine { row: row.into(), values });
        }
        bench.grid(grid);
        for (phase, rate) in PHASES.into_iter().zip(&rates[0]) {
            bench.figure(Figure::new(phase, *rate, "/s", format!("{FILES} files; as bonnie++ counts")));
        }
        if !is_settled {
            bench.remark(
                "dropping the kernel's dentry and inode caches requires root: look-ups on the card are not measured",
            );
        }
        ended.map_err(|error| of_files(error, NAME))
    }
}

struct Work<'a, 'r> {
    tree: &'a mut dyn FileTree,
    rng: Rng,
    seed: u64,
    rates: &'r mut Rates,
    is_settled: bool,
}

impl Work<'_, '_> {
    fn in_order(&mut self) -> Result<(), TargetError> {
        self.create(0, |digits, letters| format!("{digits}{letters}"))?;
        let listed = |tree: &mut dyn FileTree| tree.call(FileOp::StatFolder(0)).map(drop);
        self.stat(listed)?;
        self.synced("sequential delete", |tree| tree.call(FileOp::UnlinkFolder(0)).map(drop))
    }

    fn at_random(&mut self) -> Result<(), TargetError> {
        self.create(1, |digits, letters| format!("{letters}{digits}"))?;
        let picks: Vec<u32> = (0..FILES).map(|_| self.rng.below(FILES.into()) as u32).collect();
        self.stat(|tree| picks.iter().try_for_each(|file| tree.call(FileOp::Stat(FileNumber(*file))).map(drop)))?;
        let order = Scramble::new(FILES.into(), self.seed);
        self.synced("random delete", |tree| {
            (0..u64::from(FILES))
                .try_for_each(|file| tree.call(FileOp::Unlink(FileNumber(order.of(file) as u32))).map(drop))
        })
    }

    fn create(&mut self, folder: u32, name: impl Fn(&str, &str) -> String) -> Result<(), TargetError> {
        let rng = &mut self.rng;
        let mut letters = || {
            let count = rng.below(LETTERS_MAX + 1);
            (0..count).map(|_| LETTERS[rng.below(LETTERS.len() as u64) as usize] as char).collect::<String>()
        };
        let names: Vec<String> = (0..FILES).map(|file| name(&format!("{file:07}"), &letters())).collect();
        self.synced(PHASES[folder as usize * 3], |tree| {
            (0..FILES).zip(&names).try_for_each(|(file, name)| {
                let file = FileNumber(file);
                tree.call(FileOp::Create { file, folder, name })?;
                tree.call(FileOp::Close(file)).map(drop)
            })
        })
    }

    /// Phases that change the folder: timed without and with the sync after them.
    fn synced(
        &mut self,
        step: &str,
        work: impl FnOnce(&mut dyn FileTree) -> Result<(), TargetError>,
    ) -> Result<(), TargetError> {
        self.tree.step(step);
        let began = self.tree.now();
        work(self.tree)?;
        let changed = self.tree.now();
        self.tree.call(FileOp::SyncAll)?;
        let ended = self.tree.now();
        self.rates[0].push(Some(rate(changed.since(began).as_secs_f64())));
        self.rates[1].push(Some(rate(ended.since(began).as_secs_f64())));
        Ok(())
    }

    /// Phases that only read the folder: timed with full and with empty caches.
    fn stat(&mut self, mut work: impl FnMut(&mut dyn FileTree) -> Result<(), TargetError>) -> Result<(), TargetError> {
        self.tree.step("stat");
        for kept in 0..2 {
            let is_settled = kept == 0 || self.tree.call(FileOp::Settle)? == 1;
            let began = self.tree.now();
            if is_settled {
                work(self.tree)?;
            }
            let seconds = self.tree.now().since(began).as_secs_f64();
            self.rates[kept].push(is_settled.then(|| rate(seconds)));
            self.is_settled &= is_settled;
        }
        Ok(())
    }
}

fn rate(seconds: f64) -> f64 {
    f64::from(FILES) / seconds.max(1e-9)
}
