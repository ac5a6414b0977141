use serde::Serialize;

use crate::{Bottleneck, CqEngine, Pipeline, platform};

/// The gain of command queueing on the Zynq, which has a queue engine in hardware.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueGain {
    /// The workload.
    pub workload: &'static str,
    /// As printed, for random requests. Unit: percent.
    pub printed: &'static str,
    /// The gap between two transfers without the engine. Unit: microseconds.
    pub gap_us: f64,
    /// P_off / P_on - 1. Unit: percent.
    pub computed_percent: f64,
    /// The same if all of post passed in the gap. Unit: percent.
    pub all_of_post_percent: f64,
    /// The bottleneck with the engine.
    pub bottleneck_on: Bottleneck,
    /// The bottleneck without it.
    pub bottleneck_off: Bottleneck,
    /// The gap's parts and their sources.
    pub gap_source: &'static str,
}

pub(super) fn queue_gains() -> Vec<QueueGain> {
    let Some(zynq) = platform("zynq-zed") else { return Vec::new() };
    let gain = |workload: &crate::MeasuredSpans| {
        let pipeline = zynq.pipeline(workload);
        let limits = pipeline.limits();
        let off = Pipeline { engine: CqEngine::None, ..pipeline };
        QueueGain {
            workload: workload.name,
            printed: "~10",
            gap_us: pipeline.gap.as_micros_f64(),
            computed_percent: limits.cq_gain_percent,
            all_of_post_percent: limits.cq_gain_all_of_post_percent,
            bottleneck_on: limits.bottleneck,
            bottleneck_off: off.limits().bottleneck,
            gap_source: zynq.gap_source,
        }
    };
    zynq.workloads.iter().map(gain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_gain_about_ten_percent_and_writes_nothing() {
        let gains = queue_gains();
        let [read, write] = gains.as_slice() else { panic!("{gains:?}") };
        assert!((9.0..11.0).contains(&read.computed_percent), "{read:?}");
        assert!((23.0..23.2).contains(&read.all_of_post_percent), "{read:?}");
        assert_eq!((read.bottleneck_on, read.bottleneck_off), (Bottleneck::SerialPre, Bottleneck::Device));
        assert_eq!((write.computed_percent, write.all_of_post_percent), (0.0, 0.0));
    }

    #[test]
    fn the_model_gain_equals_the_closed_form() {
        let zynq = platform("zynq-zed").unwrap();
        for workload in zynq.workloads {
            let pipeline = zynq.pipeline(workload);
            let end = |engine| Pipeline { engine, ..pipeline }.simulate(10_000, 0).end.0 as f64;
            let gain = end(CqEngine::None) / end(CqEngine::Hardware) - 1.0;
            assert!((gain - pipeline.cq_gain()).abs() < 1e-3, "{}: {gain}", workload.name);
        }
    }
}
