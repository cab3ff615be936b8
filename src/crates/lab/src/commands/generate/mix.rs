//! Keyed hashes, keyed permutations and roots: the primitives of the generator.
//!
//! Only integers and the floating-point operations that IEEE 754 rounds exactly (`+ - * /` and the square root) are
//! used, so the same arguments give the same bytes on every machine.

/// Returns a 64-bit hash of `value` under `key`: two multiplications folded to their middle.
pub fn mix(key: u64, value: u64) -> u64 {
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        (product >> 64) as u64 ^ product as u64
    };
    let first = fold(value ^ 0x9e37_79b9_7f4a_7c15, key ^ 0xd1b5_4a32_d192_ed03);
    fold(first ^ key, 0xaef1_7502_108e_f2d9)
}

/// Returns `floor(fraction * n / 2^64)`: a 64-bit fraction scaled to `0..n`.
pub fn scale(fraction: u64, n: u64) -> u64 {
    ((u128::from(fraction) * u128::from(n)) >> 64) as u64
}

/// Returns the positive `n`-th root of `x` in `(0, 1]`, by halving; exact to the last few bits.
pub fn root(x: f64, n: u32) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        let power = (0..n).fold(1.0, |product, _| product * middle);
        if power < x {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Keyed permutation of `0..n`: invertible steps on the numbers below the next power of two, repeated until the value
/// is in range (fewer than two times on average).
pub struct Permutation {
    n: u64,
    mask: u64,
    shift: u32,
    offset: u64,
    factors: [u64; 3],
}

impl Permutation {
    /// Creates a permutation; `n` is at least 1 and at most 2^62.
    pub fn new(key: u64, n: u64) -> Self {
        let bits = n.next_power_of_two().trailing_zeros().max(2);
        Permutation {
            n,
            mask: (1 << bits) - 1,
            shift: bits.div_ceil(2),
            offset: mix(key, 0),
            factors: [1, 2, 3].map(|step| mix(key, step) | 1),
        }
    }

    /// Returns the image of `index`, which is below `n`.
    pub fn apply(&self, index: u64) -> u64 {
        let mut x = self.walk(index);
        while x >= self.n {
            x = self.walk(x);
        }
        x
    }

    /// An odd factor spreads the low bits upwards, the shift spreads the high bits downwards.
    fn walk(&self, x: u64) -> u64 {
        let mut x = x.wrapping_add(self.offset) & self.mask;
        for factor in self.factors {
            x = x.wrapping_mul(factor) & self.mask;
            x ^= x >> self.shift;
        }
        x
    }
}
