//! Refresh: by reads beside them, by age in idle time.

use emmc_units::Nanos;

use super::*;
use crate::profile::{Ageing, Refresh};

fn bench(refresh: Option<Refresh>) -> Bench {
    let flash = NandConfig { ageing: Some(Ageing::default()), ..flash(CellMode::Slc) };
    let mut bench = Bench::new(&flash, &FtlConfig { refresh, ..config() }, 46, 34 * 64, StoredContent::Data);
    for unit in 0..bench.ftl.units() {
        let data = [unit as u8; 512];
        let written = bench.ftl.write(&mut bench.nand, unit, 1, Some(&data), Durability::Buffered, bench.now);
        bench.now = written.unwrap();
    }
    bench.now = bench.ftl.flush(&mut bench.nand, bench.now).unwrap();
    bench.rest();
    bench
}

impl Bench {
    fn rest(&mut self) {
        while let Some(done) = self.ftl.background(&mut self.nand, self.now).unwrap() {
            self.now = self.now.max(done);
        }
    }

    fn read(&mut self, unit: u32) {
        let mut out = [0; 512];
        self.now = self.ftl.read(&mut self.nand, unit, 1, Some(&mut out), self.now).unwrap();
        assert_eq!(out, [unit as u8; 512], "unit {unit}");
    }
}

#[test]
fn a_block_that_is_read_often_is_copied_beside_the_reads() {
    let refreshed = |refresh| {
        let mut bench = bench(refresh);
        // Two pages of one block in turn, so that each is sensed.
        (0..400).for_each(|read| bench.read(read % 2 * 16));
        let most = (0..46).map(|block| bench.nand.reads_of(block)).max().unwrap();
        bench.rest();
        (0..bench.ftl.units()).for_each(|unit| bench.read(unit));
        bench.audit();
        (bench.ftl.stats().refreshes, most)
    };
    let (never, limited) = (refreshed(None), refreshed(Some(Refresh { reads: 100, days: 0 })));
    assert_eq!(never.0, 0);
    assert!(never.1 >= 400, "{never:?}");
    assert!((3..=5).contains(&limited.0), "{limited:?}");
    // The block is read on while a stripe of it after the other is copied.
    assert!(limited.1 < 160, "{limited:?}");
}

#[test]
fn old_data_is_copied_in_idle_time() {
    let mut bench = bench(Some(Refresh { reads: 0, days: 90 }));
    let day = Nanos::from_secs(86_400);
    bench.now = bench.now + day * 80;
    bench.rest();
    assert_eq!(bench.ftl.stats().refreshes, 0, "80 days");
    bench.now = bench.now + day * 11;
    bench.rest();
    assert!((34..=36).contains(&bench.ftl.stats().refreshes), "{} of 34 blocks", bench.ftl.stats().refreshes);
    let is_old =
        |block: &u32| bench.ftl.map.valid_in(*block) > 0 && bench.now.since(bench.nand.programmed_at(*block)) > day;
    assert_eq!((0..46).filter(is_old).count(), 0);
    bench.rest();
    let done = bench.ftl.stats().refreshes;
    bench.now = bench.now + day;
    bench.rest();
    assert_eq!(bench.ftl.stats().refreshes, done, "they are new");
    (0..bench.ftl.units()).for_each(|unit| bench.read(unit));
    bench.audit();
}

/// The first part of a write waits in the stripe that a copy beside the read of its second part fills.
#[test]
fn a_durable_write_waits_for_the_stripe_of_a_copy_beside_it() {
    let flash = NandConfig { ageing: Some(Ageing::default()), channels: 2, dies: 2, ..flash(CellMode::Slc) };
    let refresh = Some(Refresh { reads: 100, days: 0 });
    // Hot and cold units have a block each; copies go to the cold one.
    let config = FtlConfig { refresh, separate_gc: false, hot_cold: true, ..config() };
    let mut bench = Bench::new(&flash, &config, 46, 30 * 64, StoredContent::Data);
    let write = |bench: &mut Bench, unit: u32, durability| {
        bench.now = bench.ftl.write(&mut bench.nand, unit, 1, Some(&[7; 512]), durability, bench.now).unwrap();
    };
    for unit in 0..28 * 64 {
        write(&mut bench, unit, Durability::Buffered);
    }
    bench.now = bench.ftl.flush(&mut bench.nand, bench.now).unwrap();
    bench.rest();
    let (cold, hot) = (28 * 64, 27 * 64 + 1);
    let mut reads = 0;
    loop {
        // A read makes the copies of the next step; the first part of a write comes before it.
        write(&mut bench, cold + reads % 64, Durability::Buffered);
        let programs = bench.counters().page_programs;
        bench.now = bench.ftl.read(&mut bench.nand, reads % 2 * 16, 1, Some(&mut [0; 512]), bench.now).unwrap();
        reads += 1;
        if bench.counters().page_programs > programs {
            break;
        }
        assert!(reads < 400, "no copy beside the reads");
    }
    let in_flash = bench.ftl.programmed_by;
    assert!(in_flash > bench.now, "its program is still running");
    write(&mut bench, hot, Durability::Flash);
    assert!(bench.now >= in_flash, "{:?} before {in_flash:?}", bench.now);
}
