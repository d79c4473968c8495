import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletMedia

/// These need libmagic on the machine that runs them, as the packages that build Inlet do.
@Suite struct ContentTypeTests {
    @Test(
        arguments: [
            (
                [
                    0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52, 0, 0, 0, 1, 0,
                    0, 0, 1, 8, 2, 0, 0, 0,
                ], "image/png"
            ),
            ([0, 0, 0, 24] + Array("ftypisom".utf8) + [0, 0, 2, 0] + Array("isomavc1".utf8), "video/mp4"),
            (Array("%PDF-1.7\n".utf8), "application/pdf"), (Array("plain words\n".utf8), "text/plain"),
        ] as [([UInt8], String)])
    func `a type comes from the content`(bytes: [UInt8], type: String) throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write(bytes, to: "anything.exe")
        #expect(try ContentType.read(from: try SourceFile(opening: path)) == type)
    }

    @Test func `every content has a type, an empty one too`() throws {
        var random = SeededBytes(state: 7)
        for _ in 0..<500 {
            let bytes = (0..<Int(random.next() % 300)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            let type = try ContentType.of(bytes)
            #expect(type.split(separator: "/").count == 2 && type == type.lowercased())
        }
        #expect(try ContentType.of([]).hasSuffix("empty"))
        try ContentType.check()
    }
}

/// SplitMix64 (Steele, Lea, Flood): the same bytes on every run.
private struct SeededBytes {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}
