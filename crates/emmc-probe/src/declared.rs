//! What a card states in its registers, beside what was measured.

use emmc_workload::Context;

use crate::result::{Declared, Findings, Parameter, Value};

/// Unit of HC_ERASE_GRP_SIZE. Unit: bytes.
const ERASE_GROUP_UNIT: u64 = 512 << 10;
/// Unit of OPTIMAL_WRITE_SIZE. Unit: bytes.
const OPTIMAL_UNIT: u64 = 4 << 10;

impl Findings {
    /// Adds what the card and the kernel state.
    pub fn declare(&mut self, context: &Context) {
        let card = context.card.as_ref();
        let register = |name: &str| card?.registers.get(name).copied().filter(|value| *value > 0);
        let stated = [
            (
                "allocation_unit",
                "HC_ERASE_GRP_SIZE",
                register("HC_ERASE_GRP_SIZE").map(|value| value * ERASE_GROUP_UNIT),
            ),
            ("allocation_unit", "SSR AU_SIZE", card.and_then(|card| card.au_bytes)),
            ("allocation_unit", "preferred_erase_size", card.and_then(|card| card.preferred_erase_bytes)),
            ("write_unit", "OPTIMAL_WRITE_SIZE", register("OPTIMAL_WRITE_SIZE").map(|value| value * OPTIMAL_UNIT)),
            ("write_cache", "CACHE_SIZE", card.and_then(|card| card.cache_bytes)),
        ];
        for (name, source, value) in stated {
            let (Some(value), Some(parameter)) = (value, self.parameters.get_mut(name)) else { continue };
            let agrees = parameter.value.as_ref().and_then(Value::whole).map(|measured| {
                // A card has buffers beside its cache.
                if name == "write_cache" && value > 0 { measured >= value / 4 * 3 } else { measured == value }
            });
            parameter.declared.push(Declared { source: source.into(), value: Value::Whole(value), agrees });
        }
        if let (Some(bus), Some(rate)) = (&context.bus, self.parameters.get_mut("read_rate")) {
            bus_ceiling(rate, bus.mb_per_s_max);
        }
    }
}

/// A rate above the bus is a contradiction; below it the flash is the limit.
fn bus_ceiling(rate: &mut Parameter, most: f64) {
    let measured = match rate.value {
        Some(Value::Measured(value)) => Some(value),
        _ => None,
    };
    let agrees = measured.map(|measured| measured <= most * 1.02);
    let source = "the bus: clock x lines x edges, the most that it carries".into();
    rate.declared.push(Declared { source, value: Value::Measured(most), agrees });
}
