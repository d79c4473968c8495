import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

struct ChecksumTests {
    private let pool = BlockingPool(name: "checksum", threads: 1)

    /// RFC 1321, appendix A.5, and FIPS 180-4's examples.
    @Test(arguments: [
        ("", "d41d8cd98f00b204e9800998ecf8427e", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "900150983cd24fb0d6963f7d28e17f72", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    ]) func `bytes and files have the published checksums`(text: String, md5: String, sha256: String) async throws {
        #expect(Checksum.md5(text.utf8).hex == md5)
        #expect(Checksum.sha256(text.utf8) == Digest(.sha256, Checksum.sha256(Array(text.utf8)).bytes))
        #expect(Checksum.sha256(text.utf8).hex == sha256)
        let directory = try TemporaryDirectory()
        let source = try SourceFile(opening: directory.write(text.utf8, to: "f"))
        #expect(try await Checksum.sha256(of: source, on: pool).hex == sha256)
        #expect(try await Checksum.md5(of: source, offset: 0, length: Int64(text.utf8.count), on: pool).hex == md5)
    }

    @Test(arguments: [(0, 1), (1, 262_144), (262_143, 300_000), (0, 700_001), (700_001, 0)])
    func `a slice has the checksum of its bytes`(offset: Int, length: Int) async throws {
        let bytes = pattern(700_001)
        let directory = try TemporaryDirectory()
        let source = try SourceFile(opening: directory.write(bytes, to: "f"))
        let found = try await Checksum.md5(of: source, offset: Int64(offset), length: Int64(length), on: pool)
        #expect(found == Checksum.md5(bytes[offset..<offset + length]))
    }

    @Test func `a file that ends too early is a changed source`() async throws {
        let directory = try TemporaryDirectory()
        let source = try SourceFile(opening: directory.write(pattern(10), to: "f"))
        let error = await #expect(throws: TransferError.self) {
            try await Checksum.md5(of: source, offset: 5, length: 6, on: pool)
        }
        #expect(error?.code == .sourceChanged)
        #expect(error?.reason.contains("/f") == true)
    }

    @Test func `cancelling ends a long checksum`() async throws {
        let directory = try TemporaryDirectory()
        let source = try SourceFile(opening: sparseFile(directory, size: 1 << 40))
        let pool = pool
        let task = Task {
            do throws(TransferError) {
                return try await Checksum.sha256(of: source, on: pool).hex
            } catch { return error.code.rawValue }
        }
        task.cancel()
        #expect(await task.value == "cancelled")
    }
}
