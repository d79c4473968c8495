import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@testable import InletPipelines

/// What a `type: s3` section may say, and what becomes of it.
@Suite struct S3SettingsTests {
    static func settings(
        _ values: [String: ConfigValue] = [:], environment: [String: String] = [:], home: FilePath? = nil,
        withKeys: Bool = true
    ) throws(SettingFault) -> S3Settings {
        var all: [String: ConfigValue] = [
            "endpoint": .string("https://s3.eu-west-1.store.example"), "bucket": .string("media"),
        ]
        if withKeys {
            all["access_key"] = .secret(Secret("access-canary"))
            all["secret_key"] = .secret(Secret("secret-canary"))
        }
        all.merge(values) { $1 }
        return try S3Settings(section(all), environment: { environment[$0] }, home: home)
    }

    @Test func `defaults are those of the key table`() throws {
        let settings = try Self.settings()
        #expect(settings.base.text == "https://s3.eu-west-1.store.example/media")
        #expect(settings.region == "eu-west-1")
        #expect(settings.partSize == 8 << 20 && settings.largestPart == 64 << 20)
        #expect(settings.multipartThreshold == 16 << 20)
        #expect(settings.maxObjectSize == 5 << 40)
        #expect(settings.parallelParts == 8)
        #expect(settings.verify == .auto)
        #expect(settings.ifExists == .overwrite)
        #expect(settings.connections == nil)
        #expect(settings.objectHeaders.isEmpty)
        let defaults = Dictionary(uniqueKeysWithValues: S3Settings.type.keys.map { ($0.name, $0.defaultText) })
        #expect(defaults["part_size"] == "auto" && defaults["multipart_threshold"] == "16MiB")
        #expect(S3Settings.type.keys.allSatisfy { $0.summary.hasSuffix(".") })
    }

    /// The remarks of `inlet check` on a bucket's endpoint.
    private static func remarks(_ endpoint: String) -> [SettingFinding] {
        let values = section(["endpoint": .string(endpoint), "bucket": .string("media")])
        return S3Kind().remarks(on: DestinationSettings(name: "store", type: "s3", values: values), [])
    }

    @Test(arguments: [
        "https://api.example/base/v1/multipart/create", "https://api.example/base/v1/presign/upload",
        "https://api.example/base/v1/objects",
    ])
    func `what looks like a call of the Spiral API is taken, and remarked on`(_ address: String) {
        #expect(throws: Never.self) { try Self.settings(["endpoint": .string(address)]) }
        let remarks = Self.remarks(address)
        #expect(remarks.count == 1 && remarks.first?.isFine == false)
        #expect(
            remarks.first?.text.contains("use 'type: r2' with 'api: https://api.example/base'") == true, "\(remarks)")
    }

    @Test(arguments: [
        "https://gw.example/v1/objectstore", "https://gw.example/v1", "https://gw.example/v1/objects/tenant/store",
        "https://gw.example/xv1/objects", "https://gw.example/r2", "https://v1.example/objects",
    ])
    func `an endpoint that only resembles one is taken without a word`(_ address: String) {
        #expect(throws: Never.self) { try Self.settings(["endpoint": .string(address)]) }
        #expect(Self.remarks(address).isEmpty)
    }

    static let addresses: [([String: ConfigValue], String, String)] = [
        (
            ["endpoint": .string("https://acc.r2.cloudflarestorage.com")], "https://acc.r2.cloudflarestorage.com/media",
            "auto"
        ),
        (["endpoint": .string("http://127.0.0.1:9000/")], "http://127.0.0.1:9000/media", "us-east-1"),
        (["endpoint": .string("http://localhost:9000")], "http://localhost:9000/media", "us-east-1"),
        (
            ["endpoint": .string("https://minio.lan.example:9000/s3")], "https://minio.lan.example:9000/s3/media",
            "us-east-1"
        ),
        (
            ["endpoint": .string("https://s3.us-west-004.backblazeb2.com")],
            "https://s3.us-west-004.backblazeb2.com/media", "us-west-004"
        ),
        (
            ["endpoint": .string("https://s3.eu-west-1.amazonaws.com")], "https://media.s3.eu-west-1.amazonaws.com/",
            "eu-west-1"
        ),
        (["endpoint": .string("https://s3.amazonaws.com")], "https://media.s3.amazonaws.com/", "us-east-1"),
        (
            ["endpoint": .string("https://s3.dualstack.eu-west-1.amazonaws.com")],
            "https://media.s3.dualstack.eu-west-1.amazonaws.com/", "eu-west-1"
        ),
        (
            ["endpoint": .string("https://s3.eu-west-1.amazonaws.com"), "bucket": .string("a.b")],
            "https://s3.eu-west-1.amazonaws.com/a.b", "eu-west-1"
        ),
        (
            ["endpoint": .string("https://s3.eu-west-1.amazonaws.com"), "style": .string("path")],
            "https://s3.eu-west-1.amazonaws.com/media", "eu-west-1"
        ),
        (
            ["endpoint": .string("https://minio.example:9000"), "style": .string("virtual")],
            "https://media.minio.example:9000/", "us-east-1"
        ),
        (["endpoint": .string("https://10.0.0.8"), "region": .string("home-1")], "https://10.0.0.8/media", "home-1"),
        (["endpoint": .string("https://[2001:db8::8]:9000")], "https://[2001:db8::8]:9000/media", "us-east-1"),
    ]

    @Test(arguments: addresses) func `the bucket's address and region follow from the endpoint`(
        _ values: [String: ConfigValue], _ address: String, _ region: String
    ) throws {
        let settings = try Self.settings(values)
        #expect(settings.base.text == address)
        #expect(settings.region == region)
    }

    @Test func `a region alone is AWS`() throws {
        let values: [String: ConfigValue] = [
            "bucket": .string("media"), "region": .string("eu-central-1"), "access_key": .secret(Secret("a")),
            "secret_key": .secret(Secret("s")),
        ]
        let settings = try S3Settings(section(values), environment: { _ in nil }, home: nil)
        #expect(settings.base.text == "https://media.s3.eu-central-1.amazonaws.com/")
        #expect(settings.region == "eu-central-1")
    }

    static let faults: [(String, [String: ConfigValue])] = [
        ("bucket", ["bucket": .string("")]), ("bucket", ["bucket": .string("a/b")]),
        ("bucket", ["bucket": .string("..")]), ("bucket", ["bucket": .string("a b")]),
        ("endpoint", ["endpoint": .string("http://store.example")]), ("endpoint", ["endpoint": .string("store")]),
        ("endpoint", ["endpoint": .string("https://user:pw-canary@store.example")]),
        ("part_size", ["part_size": .bytes((5 << 20) - 1)]), ("part_size", ["part_size": .bytes((4 << 30) + 1)]),
        ("multipart_threshold", ["multipart_threshold": .bytes((5 << 30) + 1)]),
        ("max_object_size", ["max_object_size": .bytes((50_000 << 30) + 1)]),
        ("max_object_size", ["max_object_size": .bytes(0)]),
        ("metadata", ["metadata": .map(["größe": "1"])]), ("metadata", ["metadata": .map(["a": "é"])]),
        ("metadata", ["metadata": .map(["a b": "1"])]), ("metadata", ["metadata": .map(["MTime": "1"])]),
        ("cache_control", ["cache_control": .string("a\r\nb: c")]), ("acl", ["acl": .string("é")]),
        ("public_url", ["public_url": .string("http://cdn.example")]),
        ("secret_key", ["secret_key": .secret(Secret(""))]), ("access_key", ["access_key": .secret(Secret(""))]),
    ]

    @Test(arguments: faults) func `what cannot be used is refused at its key`(
        _ key: String, _ values: [String: ConfigValue]
    ) {
        let fault = #expect(throws: SettingFault.self) { try Self.settings(values) }
        #expect(fault?.key == key)
        #expect(fault?.message.contains("canary") == false)
    }

    @Test func `objects get the fields that are configured`() throws {
        let settings = try Self.settings([
            "cache_control": .string("max-age=60"), "storage_class": .string("STANDARD_IA"), "acl": .string("private"),
            "metadata": .map(["Origin": "nas 1", "a-b": "c"]),
        ])
        #expect(
            settings.objectHeaders.map { "\($0.name): \($0.value)" } == [
                "cache-control: max-age=60", "x-amz-storage-class: STANDARD_IA", "x-amz-acl: private",
                "x-amz-meta-origin: nas 1", "x-amz-meta-a-b: c",
            ])
    }
}

/// Where the keys of an `s3` destination come from.
@Suite struct S3CredentialsTests {
    private static let file = """
        # made by hand
        [default]
        aws_access_key_id = AKDEFAULT
        aws_secret_access_key=sd/+=

        ; the camera's
        [camera]
        AWS_Access_Key_ID   =   AKCAMERA
        aws_secret_access_key = old
        aws_secret_access_key = sc
        aws_session_token = tc
        s3 =
          max_concurrent_requests = 20
          aws_access_key_id = nested
        [profile named]
        aws_access_key_id = AKNAMED
        aws_secret_access_key = sn
        [half]
        aws_access_key_id = AKHALF
        [ spaced ]
        aws_access_key_id = AKSPACED
        aws_secret_access_key = ss
        """

    @Test(
        arguments: [
            ("default", "AKDEFAULT", "sd/+=", nil), ("camera", "AKCAMERA", "sc", "tc"), ("named", "AKNAMED", "sn", nil),
            ("spaced", "AKSPACED", "ss", nil),
        ] as [(String, String, String, String?)], ["\n", "\r\n"])
    func `profiles are read as the AWS tools write them`(
        _ expected: (String, String, String, String?), _ lineEnd: String
    ) throws {
        let file = CredentialsFile(Self.file.replacing("\n", with: lineEnd))
        let credentials = try #require(file.credentials(expected.0))
        #expect(credentials.accessKey.reveal() == expected.1)
        #expect(credentials.secretKey.reveal() == expected.2)
        #expect(credentials.sessionToken?.reveal() == expected.3)
    }

    @Test func `half a profile and no profile are none`() {
        let file = CredentialsFile(Self.file)
        #expect(file.credentials("half") == nil)
        #expect(file.credentials("other") == nil)
        #expect(file.names == ["camera", "default", "half", "named", "spaced"])
        for text in ["", "=", "[", "[]", "a = b", "[x\na=b", "\u{0}\n[y]\n=\n= =", "[z]\naws_access_key_id"] {
            #expect(CredentialsFile(text).credentials("x") == nil)
        }
    }

    private static func source(
        _ values: [String: ConfigValue] = [:], environment: [String: String] = [:], home: FilePath? = nil
    ) throws -> CredentialsSource {
        try S3SettingsTests.settings(values, environment: environment, home: home, withKeys: false).credentials
    }

    private static let keys = ["AWS_ACCESS_KEY_ID": "AKENV", "AWS_SECRET_ACCESS_KEY": "se", "AWS_SESSION_TOKEN": "te"]

    @Test func `the configuration goes before the environment, and a named profile too`() throws {
        let home = try TemporaryDirectory()
        try home.write(Self.file.utf8, to: ".aws/credentials")
        let fixed: [String: ConfigValue] = [
            "access_key": .secret(Secret("AKCONF")), "secret_key": .secret(Secret("s")),
        ]
        func key(_ values: [String: ConfigValue], _ environment: [String: String]) throws -> String {
            let source = try Self.source(values, environment: environment, home: home.path)
            return try source.read().accessKey.reveal()
        }
        #expect(try key(fixed, Self.keys) == "AKCONF")
        #expect(try key(["profile": .string("camera")], Self.keys) == "AKCAMERA")
        #expect(try key([:], Self.keys) == "AKENV")
        #expect(try key([:], [:]) == "AKDEFAULT")
        #expect(try key([:], ["AWS_PROFILE": "named"]) == "AKNAMED")
        let other = try home.write("[default]\naws_access_key_id=AKOTHER\naws_secret_access_key=s".utf8, to: "other")
        #expect(try key([:], ["AWS_SHARED_CREDENTIALS_FILE": other.string]) == "AKOTHER")
        #expect(try key(["credentials_file": .string(other.string)], [:]) == "AKOTHER")
    }

    @Test func `keys of the environment bring their session token`() throws {
        #expect(try Self.source(environment: Self.keys).read().sessionToken?.reveal() == "te")
        var without = Self.keys
        without["AWS_SESSION_TOKEN"] = ""
        #expect(try Self.source(environment: without).read().sessionToken == nil)
    }

    @Test func `without any keys the configuration is at fault`() {
        let fault = #expect(throws: SettingFault.self) { try S3SettingsTests.settings(withKeys: false) }
        #expect(fault?.key == "access_key")
        #expect(fault?.message.contains("AWS_ACCESS_KEY_ID") == true)
    }

    @Test func `a missing file or profile is a matter of credentials, and says which`() throws {
        let directory = try TemporaryDirectory()
        let file = directory.path.appending("credentials")
        let source = CredentialsSource.file(file, profile: "gone")
        let missing = #expect(throws: DeliveryError.self) { try source.read() }
        #expect(missing?.verdict == .credentials)
        try directory.write(Self.file.utf8, to: "credentials")
        let absent = #expect(throws: DeliveryError.self) { try source.read() }
        #expect(absent?.verdict == .credentials)
        #expect(absent?.reason.contains("'gone'") == true)
        #expect(absent?.reason.contains("camera") == true)
    }

    @Test func `keys that were refused are read again from their file`() throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write("[default]\naws_access_key_id=A1\naws_secret_access_key=s".utf8, to: "c")
        let keyring = SignerCache(.file(file, profile: "default"))
        func accessKey(_ second: Int64) throws -> String {
            let time = WallTime(milliseconds: 1_795_240_800_000 + second * 1000)
            return try keyring.signer(at: time, region: "auto").credentials.accessKey.reveal()
        }
        #expect(try accessKey(0) == "A1")
        try directory.write("[default]\naws_access_key_id=A2\naws_secret_access_key=s".utf8, to: "c")
        #expect(try accessKey(1) == "A1")
        keyring.forget()
        #expect(try accessKey(2) == "A2")
    }
}

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
        #expect(S3Store.modifiedText(nanoseconds) == text)
        #expect(S3Store.modifiedTime(text) == nanoseconds)
    }

    @Test func `times are read with any number of decimals, and nothing else is`() {
        #expect(S3Store.modifiedTime("1700000000") == 1_700_000_000_000_000_000)
        #expect(S3Store.modifiedTime("1700000000.5") == 1_700_000_000_500_000_000)
        for text in ["", ".", "1.", ".5", "1.1234567890", "1e9", "+1", "--1", "1.-5", "1.2.3", "99999999999", "x"] {
            #expect(S3Store.modifiedTime(text) == nil, "\(text)")
        }
    }

    // MARK: - The chosen key

    @Test func `versions count on from the key, and come back from their note`() throws {
        let first = VersionedKey("a/b.tar.gz", [:])
        #expect(first.key == "a/b.tar.gz")
        #expect(first.notes.isEmpty)
        let third = try #require(first.next?.next)
        #expect(third.key == "a/b.tar_3.gz")
        #expect(VersionedKey("a/b.tar.gz", third.notes) == third)
        for garbage in ["", "1", "0", "-3", "x", "99999999999999999999", "10001"] {
            #expect(VersionedKey("k", [UploadRecord.chosenName: Array(garbage.utf8)]).key == "k", "\(garbage)")
        }
        #expect(VersionedKey("k", number: VersionedKey.mostVersions).next == nil)
    }

    // MARK: - Comparison

    private static let size: Int64 = 12 << 20
    private static let md5 = "0123456789abcdef0123456789abcdef"

    private static func comparison(_ verify: S3Settings.Verify = .md5) -> S3ObjectMatch {
        let order = DeliveryOrder(
            id: 1, destination: "d", key: "k", mediaType: "m", fields: [:],
            source: FileIdentity(size: size, modified: 5_000_000_001, changed: 0, inode: 1, device: 1))
        return S3ObjectMatch(order: order, plan: PartPlan(fileSize: size, configured: 5 << 20), verify: verify)
    }

    static let clues: [(S3API.Found, String?, S3ObjectMatch.MetadataMatch)] = [
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

    @Test(arguments: clues) func `a tag says same, different, or what to compute`(
        _ found: S3API.Found, _ expected: String?, _ clue: S3ObjectMatch.MetadataMatch
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
        record.parts[1] = UploadRecord.VerifiedPart(etag: "\"a&<\"", md5: nil, checksum: Digest(.crc32c, [1, 2, 3, 4]))
        record.parts[2] = UploadRecord.VerifiedPart(etag: "b")
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
