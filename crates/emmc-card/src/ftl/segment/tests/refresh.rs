//! Refresh of homes.

use super::*;
use crate::profile::{Ageing, Refresh};

#[test]
fn homes_with_old_data_or_many_reads_are_merged_in_idle_time() {
    let nand =
        NandConfig { ageing: Some(Ageing::default()), ..nand_config(CellMode::Mlc, Failures::default(), 100_000) };
    let layer = FtlConfig { refresh: Some(Refresh { reads: 50, days: 90 }), ..ftl_config(SegmentOrder::Linear, 2, 0) };
    let mut bench = Bench::new(&layer, &nand, 1);
    (0..4).for_each(|au| bench.write(au * 32, 32, Durability::Flash).unwrap());
    let rest = |bench: &mut Bench| {
        while let Some(done) = bench.ftl.background(&mut bench.nand, bench.now).unwrap() {
            bench.now = bench.now.max(done);
        }
        bench.ftl.stats().refreshes
    };
    assert_eq!(rest(&mut bench), 0);
    // Two pages in turn, so that each is sensed.
    (0..60).for_each(|read| drop(bench.read(read % 2 * 16)));
    assert_eq!(rest(&mut bench), 1, "one AU was read often");
    bench.now = bench.now + emmc_units::Nanos::from_secs(91 * 86_400);
    assert_eq!(rest(&mut bench), 1 + 4);
    bench.check();
}
