//! Builds indexes of the vectors of `data.rs`.

use ember_vector::{Config, Index, Kind, Metric, Prepared, Scalar, Scratch};

pub(crate) fn config(dim: usize, metric: Metric, scalar: Scalar, kind: Kind) -> Config {
    Config { dim, metric, scalar, kind, account: |bytes| bytes.next_multiple_of(16) }
}

pub(crate) fn filled(config: Config, vectors: &[Vec<f32>], width: usize, scratch: &mut Scratch) -> Index {
    let mut index = Index::new(config).unwrap();
    for vector in vectors {
        index.insert(&Prepared::new(vector, config.metric, config.scalar), width, scratch);
    }
    index
}
