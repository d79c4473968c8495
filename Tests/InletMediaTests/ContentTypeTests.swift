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
        var random = SeededGenerator(seed: 7)
        for _ in 0..<500 {
            let bytes = (0..<Int(random.next() % 300)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            let type = try ContentType.of(bytes)
            #expect(type.split(separator: "/").count == 2 && type == type.lowercased())
        }
        #expect(try ContentType.of([]).hasSuffix("empty"))
        try ContentType.check()
    }
}
