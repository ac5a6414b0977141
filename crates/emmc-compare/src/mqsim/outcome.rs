//! MQSim's output.

use anyhow::Context;

use super::trace::Written;
use crate::clock::Spent;
use crate::table::Side;

/// A trace's last requests are never served; more than one in a thousand missing is an error.
const MISSING_MAX: f64 = 1e-3;

/// Reads MQSim's results of a trace: its XML, and its final output.
pub(crate) fn read(text: &str, said: &str, trace: &Written, spent: Spent) -> anyhow::Result<Side> {
    let served = said.split("total requests serviced:").nth(1).and_then(|rest| rest.split_whitespace().next());
    let served = number(served, "the count of requests serviced")?;
    let moved = moved(text, "GC")? + moved(text, "WL")?;
    let kinds = ["", "_Interleaved", "_Multiplane", "_Interleaved_Multiplane"];
    let erases = kinds.iter().map(|kind| attribute(text, &format!("Issued_Flash{kind}_Erase_CMD")));
    let erases: f64 = erases.sum::<anyhow::Result<f64>>()?;
    let (made, iops) = (element(text, "Request_Count")?, element(text, "IOPS")?);
    let units = trace.units as f64;
    // A device that stopped early has no meaningful write amplification.
    let complete = units > 0.0 && served >= trace.requests as f64 * (1.0 - MISSING_MAX);
    Ok(Side {
        name: "MQSim".into(),
        requests: trace.requests,
        served: served as u64,
        spent,
        simulated_s: if iops > 0.0 { made / iops } else { 0.0 },
        write_amplification: complete.then(|| (units + moved) / units),
        erases: erases as u64,
        phase_ends: Vec::new(),
    })
}

/// Pages moved by collections (`GC`) or by wear levelling (`WL`): their number times the mean of each.
fn moved(text: &str, what: &str) -> anyhow::Result<f64> {
    let runs = attribute(text, &format!("Total_{what}_Executions"))?;
    // The mean of zero values is not a number.
    if runs == 0.0 { Ok(0.0) } else { Ok(runs * attribute(text, &format!("Average_Page_Movement_For_{what}"))?) }
}

/// The value of `name="..."`.
fn attribute(text: &str, name: &str) -> anyhow::Result<f64> {
    number(text.split(&format!(" {name}=\"")).nth(1).and_then(|rest| rest.split('"').next()), name)
}

/// The text of the first `<name>`.
fn element(text: &str, name: &str) -> anyhow::Result<f64> {
    number(text.split(&format!("<{name}>")).nth(1).and_then(|rest| rest.split('<').next()), name)
}

fn number(value: Option<&str>, name: &str) -> anyhow::Result<f64> {
    let value = value.with_context(|| format!("MQSim's results have no {name}"))?;
    value.trim().parse().ok().filter(|value: &f64| value.is_finite()).with_context(|| format!("{name} is {value:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: Written = Written { requests: 1000, units: 2000 };

    fn text(collections: u32, mean: &str) -> String {
        format!(
            "<Request_Count>1000</Request_Count><IOPS>50.0</IOPS><SSDDevice.FTL Issued_Flash_Erase_CMD=\"3\" \
             Issued_Flash_Interleaved_Erase_CMD=\"0\" Issued_Flash_Multiplane_Erase_CMD=\"4\" \
             Issued_Flash_Interleaved_Multiplane_Erase_CMD=\"0\" Total_GC_Executions=\"{collections}\" \
             Average_Page_Movement_For_GC=\"{mean}\" Total_WL_Executions=\"0\" Average_Page_Movement_For_WL=\"-nan\"/>"
        )
    }

    #[test]
    fn write_amplification_is_computed_from_moved_pages() {
        let said = "Flow Host.IO_Flow - total requests generated: 1000 total requests serviced:1000\n";
        let side = read(&text(10, "300.5"), said, &TRACE, Spent::default()).unwrap();
        assert_eq!((side.write_amplification, side.erases, side.simulated_s), (Some(2.5025), 7, 20.0));
        let side = read(&text(0, "-nan"), said, &TRACE, Spent::default()).unwrap();
        assert_eq!(side.write_amplification, Some(1.0));
        let stopped = read(&text(0, "-nan"), "total requests serviced:12", &TRACE, Spent::default()).unwrap();
        assert_eq!((stopped.served, stopped.write_amplification), (12, None));
        assert!(
            read(&text(10, "-nan"), said, &TRACE, Spent::default())
                .unwrap_err()
                .to_string()
                .contains("Average_Page_Movement")
        );
        assert!(read("", said, &TRACE, Spent::default()).is_err());
    }
}
