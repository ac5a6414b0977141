use super::{Checked, Rules};
use crate::ftl::slc_front::BLOCKS_MIN;
use crate::nand::CellMode;
use crate::profile::{GcPace, GcPolicy, LOW_BLOCKS_MIN, Mapping, Segment, SlcCache};

impl Rules<'_> {
    pub(super) fn ftl(&self) -> Checked {
        let (nand, ftl) = (&self.profile.nand, &self.profile.ftl);
        let unit = ftl.unit_bytes;
        self.range("ftl.unit_bytes", unit, 512..=131_072)?;
        self.require(unit.is_power_of_two(), "ftl.unit_bytes", unit, "must be a power of two")?;
        let rule = format!("must divide nand.page_bytes ({})", nand.page_bytes);
        self.require(nand.page_bytes % unit == 0, "ftl.unit_bytes", unit, rule)?;
        match ftl.gc {
            GcPolicy::DChoices(d) => self.range("ftl.gc.d_choices", d, 1..=10_000)?,
            GcPolicy::Windowed(w) => self.range("ftl.gc.windowed", w, 1..=1 << 24)?,
            GcPolicy::Greedy | GcPolicy::Fifo | GcPolicy::CostBenefit => {}
        }
        let least = if ftl.mapping == Mapping::Page { LOW_BLOCKS_MIN } else { 1 };
        self.range("ftl.gc_low_blocks", ftl.gc_low_blocks, least..=100_000)?;
        self.range("ftl.gc_busy_max_ms", ftl.gc_busy_max_ms, 1..=100_000)?;
        let (low, high) = (ftl.gc_low_blocks, ftl.gc_high_blocks);
        let rule = format!("must be 0 (off) or more than ftl.gc_low_blocks ({low})");
        self.require(high == 0 || high > low, "ftl.gc_high_blocks", high, rule)?;
        let (gap, endurance) = (ftl.wear.static_gap, nand.native.endurance);
        let rule = format!("must be below nand.native.endurance ({endurance}), or it has no effect");
        self.require(gap < endurance, "ftl.wear.static_gap", gap, rule)?;
        self.refresh()?;
        self.mapping()?;
        match &ftl.slc_cache {
            Some(cache) => self.slc_cache(cache),
            None => Ok(()),
        }
    }

    fn refresh(&self) -> Checked {
        let Some(refresh) = self.profile.ftl.refresh else { return Ok(()) };
        let rule = "needs [nand.ageing]: only there do reads and time count";
        self.require(self.profile.nand.ageing.is_some(), "ftl.refresh", "present", rule)?;
        self.range("ftl.refresh.days", refresh.days, 0..=36_500)?;
        let rule = "must have reads or days above 0, or be absent";
        self.require(refresh.reads > 0 || refresh.days > 0, "ftl.refresh", "of no effect", rule)
    }

    fn mapping(&self) -> Checked {
        let ftl = &self.profile.ftl;
        match (ftl.mapping, &ftl.segment) {
            (Mapping::Page, Some(_)) => {
                Err(self.broken("ftl.segment", "present", "must be absent with ftl.mapping page"))
            }
            (Mapping::Segment, None) => {
                Err(self.broken("ftl.segment", "absent", "is required with ftl.mapping segment"))
            }
            (Mapping::Page, None) => self.mapping_cache(),
            (Mapping::Segment, Some(segment)) => self.segment(segment),
        }
    }

    fn mapping_cache(&self) -> Checked {
        let Some(cache) = &self.profile.ftl.mapping_cache else { return Ok(()) };
        self.range("ftl.mapping_cache.pages", cache.pages, 1..=1 << 24)?;
        // An entry has four bytes, and a mapping page is a page of the flash.
        let most = self.profile.nand.page_bytes / 4;
        self.range("ftl.mapping_cache.units_per_page", cache.units_per_page, 1..=most)
    }

    fn segment(&self, segment: &Segment) -> Checked {
        self.range("ftl.segment.open_aus", segment.open_aus, 1..=4096)?;
        self.range("ftl.segment.random_logs", segment.random_logs, 0..=4096)?;
        let (field, most) = ("ftl.segment.random_log_bytes", segment.random_log_bytes);
        self.multiple(field, most.into(), 512)?;
        let rule = "must be 0 without ftl.segment.random_logs";
        self.require(most == 0 || segment.random_logs > 0, field, most, rule)?;
        let (field, steps) = ("ftl.segment.steps_back", segment.steps_back);
        self.range(field, steps, 0..=1_000_000)?;
        self.require(steps == 0 || segment.random_logs > 0, field, steps, rule)?;
        let ftl = &self.profile.ftl;
        let (field, merges) = ("ftl.segment.merges_at_once", segment.merges_at_once);
        self.range(field, merges, 1..=4096)?;
        let has_effect = ftl.gc_pace == GcPace::Paced && segment.random_logs > 0;
        let rule = "must be 1 unless ftl.gc_pace is paced and ftl.segment.random_logs is not 0";
        self.require(merges == 1 || has_effect, field, merges, rule)?;
        for (field, set) in [
            ("ftl.separate_gc", ftl.separate_gc),
            ("ftl.hot_cold", ftl.hot_cold),
            ("ftl.mapping_cache", ftl.mapping_cache.is_some()),
        ] {
            self.require(!set, field, "set", "is for page mapping; ftl.mapping is segment")?;
        }
        let max = self.profile.areas.enhanced_groups_max;
        let rule = "must be 0 with segment mapping, whose units no pSLC block fits";
        self.require(max == 0, "areas.enhanced_groups_max", max, rule)
    }

    fn slc_cache(&self, cache: &SlcCache) -> Checked {
        let nand = &self.profile.nand;
        let multi_bit = nand.cell != CellMode::Slc;
        self.require(multi_bit, "ftl.slc_cache", "present", "must be absent with nand.cell slc")?;
        self.require(nand.slc.is_some(), "nand.slc", "absent", "is required for ftl.slc_cache")?;
        self.range("ftl.slc_cache.blocks", cache.blocks, BLOCKS_MIN..=100_000)?;
        let rule = format!("must be 1 to {}, less than ftl.slc_cache.blocks", cache.blocks - 1);
        let low = (1..cache.blocks).contains(&cache.low_blocks);
        self.require(low, "ftl.slc_cache.low_blocks", cache.low_blocks, rule)?;
        self.range("ftl.slc_cache.stream_fold_percent", cache.stream_fold_percent, 0..=1000)?;
        let (field, percent) = ("ftl.slc_cache.stream_fold_percent", cache.stream_fold_percent);
        let rule = "must be 0 without ftl.slc_cache.bypass_bytes: nothing bypasses the log";
        self.require(percent == 0 || cache.bypass_bytes > 0, field, percent, rule)?;
        self.multiple("ftl.slc_cache.bypass_bytes", cache.bypass_bytes.into(), 512)?;
        // The data path cuts transfers into stripes, or 32 KiB where that is more.
        let most = (nand.page_bytes * nand.dies * nand.planes).max(32 << 10);
        let rule = format!("must be at most {most}: longer writes reach the layer in parts of that size");
        self.require(cache.bypass_bytes <= most, "ftl.slc_cache.bypass_bytes", cache.bypass_bytes, rule)
    }
}
