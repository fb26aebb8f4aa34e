//! Measures the cost of parsing one command and of writing one reply.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ember_protocol::{Batch, Limits, ParseStatus, Parser, Protocol, Reply};

/// Commands per pipeline.
const PIPELINE: usize = 64;

fn pipeline(command: impl Fn(usize) -> Vec<Vec<u8>>) -> Vec<u8> {
    let mut input = Vec::new();
    for index in 0..PIPELINE {
        let arguments = command(index);
        input.extend_from_slice(format!("*{}\r\n", arguments.len()).as_bytes());
        for argument in arguments {
            input.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
            input.extend_from_slice(&argument);
            input.extend_from_slice(b"\r\n");
        }
    }
    input
}

fn key(index: usize) -> Vec<u8> {
    format!("key:{:012}", index * 7919).into_bytes()
}

fn parse(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("parse");
    group.throughput(Throughput::Elements(PIPELINE as u64));
    let pipelines = [
        ("get", pipeline(|index| vec![b"GET".to_vec(), key(index)])),
        ("set_64", pipeline(|index| vec![b"SET".to_vec(), key(index), vec![b'x'; 64]])),
        ("set_512", pipeline(|index| vec![b"SET".to_vec(), key(index), vec![b'x'; 512]])),
        ("mset_10", pipeline(|index| (0..21).map(|n| key(index + n)).collect())),
        (
            "inline_get",
            (0..PIPELINE).flat_map(|index| [&b"GET "[..], &key(index), b"\r\n"].concat()).collect(),
        ),
    ];
    for (name, input) in &pipelines {
        let mut parser = Parser::new();
        let mut batch = Batch::new();
        let limits = Limits::default();
        group.bench_function(*name, |bencher| {
            bencher.iter(|| {
                batch.clear();
                assert_eq!(parser.parse(black_box(input), &mut batch, &limits), ParseStatus::NeedMore);
                assert_eq!(batch.len(), PIPELINE);
                parser.discard(parser.consumed());
            });
        });
    }
    let input = &pipelines[0].1;
    let mut batch = Batch::new();
    let mut parser = Parser::new();
    let limits = Limits::default();
    group.bench_function("get_and_read_arguments", |bencher| {
        bencher.iter(|| {
            batch.clear();
            let _ = parser.parse(black_box(input), &mut batch, &limits);
            parser.discard(parser.consumed());
            let mut sum = 0;
            for index in 0..batch.len() {
                let args = batch.command(index, input);
                sum += args.at(0).len() + usize::from(args.at(1)[0]);
            }
            sum
        });
    });
    group.finish();
}

fn write(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("reply");
    group.throughput(Throughput::Elements(PIPELINE as u64));
    let mut reply = Reply::new(Protocol::Resp2);
    let value = [b'x'; 512];
    let mut bench = |name: &str, write: &dyn Fn(&mut Reply, usize)| {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                reply.clear();
                for index in 0..PIPELINE {
                    write(&mut reply, black_box(index));
                }
                reply.len_bytes()
            });
        });
    };
    bench("ok", &|reply, _| reply.ok());
    bench("bulk_16", &|reply, _| reply.bulk(black_box(&value[..16])));
    bench("bulk_64", &|reply, _| reply.bulk(black_box(&value[..64])));
    bench("bulk_512", &|reply, _| reply.bulk(black_box(&value[..512])));
    bench("integer_small", &|reply, index| reply.integer(index as i64));
    bench("integer_large", &|reply, index| reply.integer(index as i64 * 1_000_003 + 1000));
    bench("bulk_integer", &|reply, index| reply.bulk_integer(index as i64 * 1_000_003));
    bench("double_fraction", &|reply, index| reply.double(index as f64 + 0.1));
    group.finish();
}

criterion_group!(benches, parse, write);
criterion_main!(benches);
