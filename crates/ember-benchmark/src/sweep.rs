//! Measures how throughput scales with connections and with pipelines: short runs for the plots of `--report`.

use std::time::Duration;

use super::engine::Goal;
use super::failure::Failure;
use super::figures::Figures;
use super::target::{Load, Target};
use super::workload::Workload;

/// The numbers of connections, and the pipeline lengths, to measure.
const STEPS: [u32; 5] = [1, 4, 16, 64, 256];

/// The duration of each run.
const STEP: Duration = Duration::from_millis(300);

/// The maximum number of bytes that a connection sends at a time.
const BATCH_BYTES_MAX: usize = 16 << 20;

/// Requests per second of one test, by the varied parameter.
#[derive(Clone, Debug, Default)]
pub(super) struct Scaling {
    pub(super) by_clients: Vec<(u32, f64)>,
    pub(super) by_pipeline: Vec<(u32, f64)>,
}

/// Measures each test with other numbers of connections and other pipelines, in a closed loop.
///
/// # Errors
/// Returns a message if the server cannot be measured.
pub(super) fn run(target: &mut Target, workloads: &[Workload], load: &Load) -> Result<Vec<Scaling>, Failure> {
    let mut scalings = Vec::new();
    for workload in workloads {
        let mut scaling = Scaling::default();
        let short = Load { goal: Goal::Time(STEP), rate: None, warm_up: None, ..load.clone() };
        for clients in STEPS {
            let load = Load { clients, threads: load.threads.min(clients), ..short.clone() };
            scaling.by_clients.push((clients, Figures::of(&target.measure(workload, &load)?).rate));
        }
        let longest = workload.parts.iter().map(|(template, _)| template.len()).max().unwrap_or(0);
        for pipeline in STEPS {
            if longest * pipeline as usize <= BATCH_BYTES_MAX {
                let load = Load { pipeline, ..short.clone() };
                scaling.by_pipeline.push((pipeline, Figures::of(&target.measure(workload, &load)?).rate));
            }
        }
        scalings.push(scaling);
    }
    Ok(scalings)
}
