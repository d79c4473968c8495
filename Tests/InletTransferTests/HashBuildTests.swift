import CHash
import InletCore
import InletTestSupport
import Testing

/// Every build of our hashes that this processor can run, against a plain reference.
struct HashBuildTests {
    /// Bit by bit, as the standard defines it.
    private static func crc64(_ bytes: [UInt8]) -> UInt64 {
        ~bytes.reduce(UInt64.max) { crc, byte in
            (0..<8).reduce(crc ^ UInt64(byte)) { crc, _ in crc >> 1 ^ (crc & 1 == 1 ? 0x9A6C_9329_AC4B_C9B5 : 0) }
        }
    }

    @Test(arguments: 0..<40 as Range<UInt64>)
    func `every build has the CRC-64 of its definition`(_ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let bytes = pattern(Int.random(in: 0...2500, using: &generator), seed: seed)
        let cut = Int.random(in: 0...bytes.count, using: &generator)
        let expected = Self.crc64(bytes)
        var index = 0
        while let build = inlet_crc64nvme_build(index)?.pointee {
            let found = bytes.withUnsafeBytes { bytes in
                let rest = UnsafeRawBufferPointer(rebasing: bytes[cut...])
                return build.update(build.update(0, bytes.baseAddress, cut), rest.baseAddress, rest.count)
            }
            #expect(found == expected, "\(String(cString: build.name)), \(bytes.count) bytes, cut at \(cut)")
            index += 1
        }
        #expect(index > 0)
        #expect(bytes.withUnsafeBytes { inlet_crc64nvme(0, $0.baseAddress, $0.count) } == expected)
    }
}
