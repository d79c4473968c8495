import InletCore
import Testing

/// Hashes and codes as their standards give them.
@Suite struct HashFunctionTests {
    @Test func `hashes are those of the standards`() {
        let abc = "abc".utf8
        #expect(MD5.digest(of: abc).hex == "900150983cd24fb0d6963f7d28e17f72")
        #expect(SHA1.digest(of: abc).hex == "a9993e364706816aba3e25717850c26c9cd0d89d")
        #expect(SHA256.digest(of: abc).hex == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        #expect(
            C4.bytes(of: abc).hex
                == "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
                + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f")
        #expect(MD5().digest.hex == "d41d8cd98f00b204e9800998ecf8427e")
        #expect(SHA256.algorithm == .sha256 && SHA1.algorithm == .sha1 && MD5.algorithm == .md5)
    }

    @Test func `pieces give what the whole gives, and a copy goes on by itself`() {
        let text = (0..<1000).map { UInt8(truncatingIfNeeded: $0) }
        var hash = SHA256()
        hash.update(text[..<77])
        let copy = hash
        let begun = hash.digest
        hash.update(text[77...])
        #expect(hash.digest == SHA256.digest(of: text) && copy.digest == begun && begun != hash.digest)
    }

    /// RFC 4231, cases 1, 2 and 6: a short key, a short message, and a key that is longer than a block.
    @Test(arguments: [
        (
            [UInt8](repeating: 0x0B, count: 20), "Hi There",
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        ),
        (
            Array("Jefe".utf8), "what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        ),
        (
            [UInt8](repeating: 0xAA, count: 131), "Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        ),
    ])
    func `codes are those of the standard, and only those`(_ key: [UInt8], _ message: String, _ code: String) {
        let keyed = MessageCode(key: key)
        #expect(keyed.code(of: message.utf8).hex == code)
        var bytes = keyed.code(of: message.utf8)
        #expect(keyed.isCode(bytes, of: message.utf8))
        #expect(!keyed.isCode(Array(bytes.dropLast()), of: message.utf8) && !keyed.isCode([], of: message.utf8))
        bytes[31] ^= 1
        #expect(!keyed.isCode(bytes, of: message.utf8))
    }

    @Test func `bytes that nobody can foretell are others each time`() {
        #expect(Set((0..<100).map { _ in [UInt8].unforeseeable(16) }).count == 100)
        #expect([UInt8].unforeseeable(0).isEmpty)
    }
}

@Suite struct HistogramTests {
    /// A value, and how many values are at most 1, at most 2, and there at all, once it is added to an empty histogram.
    @Test(arguments: [
        (0.0, [1, 1, 1]), (0.999, [1, 1, 1]), (1.0, [1, 1, 1]), (1.001, [0, 1, 1]), (2.0, [0, 1, 1]), (2.5, [0, 0, 1]),
        (1e12, [0, 0, 1]),
    ])
    func `a value is counted in its bound and in all above it`(value: Double, counts: [Int]) {
        var histogram = Histogram(bounds: [1, 2])
        histogram.add(value)
        #expect(histogram.atMost.map(\.bound) == [1, 2] && histogram.atMost.map(\.count) + [histogram.count] == counts)
        #expect(histogram.sum == value)
    }

    @Test func `many values add up`() {
        var histogram = Histogram(bounds: [1, 2, 4])
        for value in [0.5, 0.5, 1.5, 3, 3, 3, 9] { histogram.add(value) }
        #expect(histogram.atMost.map(\.count) == [2, 3, 6] && histogram.count == 7 && histogram.sum == 20.5)
    }

    @Test func `a duration is counted in seconds`() {
        var histogram = Histogram(bounds: [0.05, 1])
        histogram.add(.milliseconds(50))
        histogram.add(.seconds(90))
        #expect(histogram.atMost.map(\.count) == [1, 1] && histogram.count == 2 && histogram.sum == 90.05)
    }

    @Test(arguments: [Histogram.ofDeliveries, .ofWrites])
    func `the bounds that are used ascend`(histogram: Histogram) {
        #expect(zip(histogram.bounds, histogram.bounds.dropFirst()).allSatisfy { $0 < $1 })
        #expect(histogram.count == 0 && histogram.sum == 0)
    }
}
