import InletCore
import InletTestSupport
import InletTransfer
import Testing

@testable import InletPipelines

/// The rules of the S3 pipeline that need no server.
@Suite struct S3TableTests {
    // MARK: - Modification times

    @Test(
        arguments: [
            (0, "0.000000000"), (1, "0.000000001"), (1_700_000_000_123_456_789, "1700000000.123456789"),
            (1_700_000_000_000_000_000, "1700000000.000000000"), (-1, "-0.000000001"),
            (-1_500_000_000, "-1.500000000"), (.max, "9223372036.854775807"),
        ] as [(Int64, String)])
    func `times are written as rclone reads them`(_ nanoseconds: Int64, _ text: String) {
        #expect(ModifiedTime.text(nanoseconds) == text)
        #expect(ModifiedTime.nanoseconds(text) == nanoseconds)
    }

    @Test func `times are read with any number of decimals, and nothing else is`() {
        #expect(ModifiedTime.nanoseconds("1700000000") == 1_700_000_000_000_000_000)
        #expect(ModifiedTime.nanoseconds("1700000000.5") == 1_700_000_000_500_000_000)
        for text in ["", ".", "1.", ".5", "1.1234567890", "1e9", "+1", "--1", "1.-5", "1.2.3", "99999999999", "x"] {
            #expect(ModifiedTime.nanoseconds(text) == nil, "\(text)")
        }
    }

    // MARK: - The chosen key

    @Test func `versions count on from the key, and come back from their note`() throws {
        let first = ChosenKey("a/b.tar.gz", [:])
        #expect(first.key == "a/b.tar.gz")
        #expect(first.notes.isEmpty)
        let third = try #require(first.next?.next)
        #expect(third.key == "a/b.tar_3.gz")
        #expect(ChosenKey("a/b.tar.gz", third.notes) == third)
        for garbage in ["", "1", "0", "-3", "x", "99999999999999999999", "10001"] {
            #expect(ChosenKey("k", [UploadRecord.chosenName: Array(garbage.utf8)]).key == "k", "\(garbage)")
        }
        #expect(ChosenKey("k", number: ChosenKey.mostVersions).next == nil)
    }

    // MARK: - Comparison

    private static let size: Int64 = 12 << 20
    private static let md5 = "0123456789abcdef0123456789abcdef"

    private static func comparison(_ verify: S3Settings.Verify = .md5) -> S3Comparison {
        let order = DeliveryOrder(
            id: 1, destination: "d", key: "k", mediaType: "m", fields: [:],
            source: FileIdentity(size: size, modified: 5_000_000_001, changed: 0, inode: 1, device: 1))
        return S3Comparison(order: order, plan: PartPlan(fileSize: size, configured: 5 << 20), verify: verify)
    }

    static let clues: [(S3API.Found, String?, S3Comparison.Clue)] = [
        (S3API.Found(size: size + 1, etag: "\(md5)-3", modified: "5.000000001"), "\(md5)-3", .different),
        (S3API.Found(size: size, etag: "\(md5)-3"), "\(md5)-3", .same),
        (S3API.Found(size: size, etag: "\(md5)-3"), "\(md5.reversed())-3".lowercased(), .different),
        (S3API.Found(size: size, etag: "\(md5)-3"), nil, .compare(partSizes: [5 << 20])),
        (S3API.Found(size: size, etag: md5), nil, .compare(partSizes: [nil])),
        (S3API.Found(size: size, etag: md5), "\(md5)-3", .compare(partSizes: [nil])),
        // By another tool: each of its usual sizes may be it. Sizes that hold all of the file are one.
        (S3API.Found(size: size, etag: "\(md5)-2"), nil, .compare(partSizes: [8 << 20, 10 << 20])),
        (S3API.Found(size: size, etag: "\(md5)-1"), nil, .compare(partSizes: [size])),
        (S3API.Found(size: size, etag: "\(md5)-2", modified: "5.000000001"), "\(md5)-3", .same),
        // Cut otherwise, or a tag of another kind: the time decides.
        (S3API.Found(size: size, etag: "\(md5)-9", modified: "5.000000001"), nil, .same),
        (S3API.Found(size: size, etag: "\(md5)-9", modified: "5.000000002"), nil, .different),
        (S3API.Found(size: size, etag: "\(md5)-0", modified: "5.000000002"), nil, .different),
        (S3API.Found(size: size, etag: "opaque", modified: "5.000000001"), "\(md5)-3", .same),
        (S3API.Found(size: size, etag: "opaque"), nil, .different),
        (S3API.Found(size: size, etag: "", modified: "nonsense"), nil, .different),
    ]

    @Test(arguments: clues)
    func `a tag says same, different, or what to compute`(
        _ found: S3API.Found, _ expected: String?, _ clue: S3Comparison.Clue
    ) {
        #expect(Self.comparison().clue(found, expectedETag: expected) == clue)
    }

    @Test func `an object that was cut at another rate is compared by that cut`() {
        var comparison = Self.comparison()
        comparison.plans = PartPlan.all(fileSize: Self.size, from: 5 << 20, to: 13 << 20, mostParts: 1000)
        #expect(comparison.plans.map(\.count) == [3, 2])
        let found = S3API.Found(size: Self.size, etag: "\(Self.md5)-2", modified: "5.000000002")
        #expect(comparison.clue(found, expectedETag: nil) == .compare(partSizes: [10 << 20, 8 << 20]))
        #expect(comparison.clue(found, expectedETag: "\(Self.md5)-3") == .different)
    }

    // MARK: - Bodies

    @Test func `the list of parts names every part, its tag and its checksum`() {
        var record = UploadRecord(
            upload: OpenUpload(id: "u", key: "k"), plan: PartPlan(fileSize: (5 << 20) + 1, configured: 5 << 20))
        record.parts[1] = UploadRecord.ProvedPart(etag: "\"a&<\"", md5: nil, checksum: Digest(.crc32c, [1, 2, 3, 4]))
        record.parts[2] = UploadRecord.ProvedPart(etag: "b")
        #expect(
            S3API.partList(record) == """
                <CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">\
                <Part><PartNumber>1</PartNumber><ETag>&quot;a&amp;&lt;&quot;</ETag>\
                <ChecksumCRC32C>AQIDBA==</ChecksumCRC32C></Part>\
                <Part><PartNumber>2</PartNumber><ETag>b</ETag></Part></CompleteMultipartUpload>
                """)
    }

    @Test func `pages of parts have a length that is asked for`() {
        let upload = OpenUpload(id: "u", key: "k")
        let first = S3API.listing(upload, after: 0).query
        #expect(first.map { "\($0.name)=\($0.value)" } == ["uploadId=u", "max-parts=1000"])
        let next = S3API.listing(upload, after: 1000).query
        #expect(next.map { "\($0.name)=\($0.value)" } == ["uploadId=u", "max-parts=1000", "part-number-marker=1000"])
    }

    @Test func `listings are understood, percent-encoded or not`() throws {
        func page(_ inner: String) throws -> (objects: [ListedObject], next: String?) {
            S3API.page(try XMLReader.read(Array("<ListBucketResult>\(inner)</ListBucketResult>".utf8)))
        }
        let item = """
            <Contents><Key>a+b%2B%C3%BC/%0A.bin</Key><Size>12</Size><LastModified>2026-11-21T06:00:00.000Z</LastModified>\
            <ETag>&quot;AB-2&quot;</ETag></Contents>
            """
        let encoded = try page(
            "<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
                + "<NextContinuationToken>t/+=</NextContinuationToken>\(item)<Contents><Key>no size</Key></Contents>")
        #expect(encoded.next == "t/+=")
        #expect(
            encoded.objects == [
                ListedObject(key: "a b+ü/\n.bin", size: 12, modified: "2026-11-21T06:00:00.000Z", etag: "ab-2")
            ])
        #expect(try page("<IsTruncated>false</IsTruncated>\(item)").objects.first?.key == "a+b%2B%C3%BC/%0A.bin")
        #expect(try page("<IsTruncated>true</IsTruncated><NextContinuationToken/>").next == nil)
    }

    @Test(arguments: 0..<100 as Range<UInt64>)
    func `any key is one path on the wire, and comes back`(_ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let scalars = (0..<20).compactMap { _ in UnicodeScalar(UInt32.random(in: 1...0x2FFF, using: &generator)) }
        let key = String(String.UnicodeScalarView(scalars)) + "/../%41?#&+ "
        let settings = try S3SettingsTests.settings()
        let url = settings.base.appending(path: key)
        #expect(url.path.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"?#&+ ".utf8.contains($0) })
        #expect(Percent.decode(url.path[...]) == "/media/" + (key.hasPrefix("/") ? String(key.dropFirst()) : key))
    }

    // MARK: - Parts

    @Test(
        arguments: [
            (1 << 40, 8 << 20, 9987, 105), (80_000 << 20, 8 << 20, 10_000, 8), ((80_000 << 20) + 1, 8 << 20, 8889, 9),
            (5 << 40, 8 << 20, 9987, 525),
        ] as [(Int64, Int64, Int, Int64)])
    func `a file has at most 10,000 parts`(_ size: Int64, _ configured: Int64, _ count: Int, _ mebibytes: Int64) {
        let plan = PartPlan(fileSize: size, configured: configured, mostParts: S3Settings.mostParts)
        #expect(plan.count == count)
        #expect(plan.partSize == mebibytes << 20)
    }
}
