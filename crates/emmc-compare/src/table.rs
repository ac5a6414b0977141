//! The comparison table.

use crate::clock::Spent;

/// One simulator's results for the job.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Side {
    /// Its name.
    pub(crate) name: String,
    /// Requests submitted.
    pub(crate) requests: u64,
    /// Requests served: a simulator that stops early does not report that.
    pub(crate) served: u64,
    /// Its cost on this machine.
    pub(crate) spent: Spent,
    /// Its simulated time.
    pub(crate) simulated_s: f64,
    /// Programmed units over the host's written units.
    pub(crate) write_amplification: Option<f64>,
    /// Blocks erased.
    pub(crate) erases: u64,
    /// Requests and simulated time at the end of every phase.
    pub(crate) phase_ends: Vec<(u64, f64)>,
}

/// One line per simulator.
pub(crate) fn render(sides: &[&Side]) -> String {
    let head = ["", "requests", "served", "wall s", "CPU s", "requests/CPU s", "simulated s", "WA", "erases"];
    let mut lines: Vec<Vec<String>> = vec![head.iter().map(ToString::to_string).collect()];
    for side in sides {
        let amplification = side.write_amplification.map_or("-".into(), |wa| format!("{wa:.3}"));
        lines.push(vec![
            side.name.clone(),
            side.requests.to_string(),
            side.served.to_string(),
            format!("{:.2}", side.spent.wall_s),
            format!("{:.2}", side.spent.cpu_s),
            format!("{:.0}", side.served as f64 / side.spent.cpu_s),
            format!("{:.1}", side.simulated_s),
            amplification,
            side.erases.to_string(),
        ]);
    }
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let row = |line: &Vec<String>| {
        let cells = line.iter().zip(&widths).map(|(cell, &width)| format!("{cell:>width$}"));
        cells.collect::<Vec<_>>().join("  ")
    };
    lines.iter().map(row).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let side = |name: &str, served| Side {
            name: name.into(),
            requests: 1000,
            served,
            spent: Spent { wall_s: 0.75, cpu_s: 0.5 },
            simulated_s: 12.0,
            write_amplification: Some(4.0),
            erases: 7,
            phase_ends: Vec::new(),
        };
        let text = render(&[&side("emmclab", 1000), &side("MQSim", 12)]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{text}");
        assert_eq!(
            lines[2].split_whitespace().collect::<Vec<_>>(),
            ["MQSim", "1000", "12", "0.75", "0.50", "24", "12.0", "4.000", "7"]
        );
    }
}
