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
        let section = ConfigSection(values: all, positions: [:], position: SourcePosition(line: 1, column: 1))
        return try S3Settings(section, environment: { environment[$0] }, home: home)
    }

    @Test func `defaults are those of the key table`() throws {
        let settings = try Self.settings()
        #expect(settings.base.text == "https://s3.eu-west-1.store.example/media")
        #expect(settings.region == "eu-west-1")
        #expect(settings.partSize == 8 << 20 && settings.largestPart == 64 << 20)
        #expect(settings.multipartThreshold == 16 << 20)
        #expect(settings.maxObjectSize == 5 << 40)
        #expect(settings.parallelParts == 4)
        #expect(settings.verify == .md5)
        #expect(settings.ifExists == .overwrite)
        #expect(settings.connections == 32)
        #expect(settings.objectHeaders.isEmpty)
        let defaults = Dictionary(uniqueKeysWithValues: S3Settings.type.keys.map { ($0.name, $0.defaultText) })
        #expect(defaults["part_size"] == "auto" && defaults["multipart_threshold"] == "16MiB")
        #expect(S3Settings.type.keys.allSatisfy { $0.summary.hasSuffix(".") })
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

    @Test(arguments: addresses)
    func `the bucket's address and region follow from the endpoint`(
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
        let section = ConfigSection(values: values, positions: [:], position: SourcePosition(line: 1, column: 1))
        let settings = try S3Settings(section, environment: { _ in nil }, home: nil)
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

    @Test(arguments: faults)
    func `what cannot be used is refused at its key`(_ key: String, _ values: [String: ConfigValue]) {
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
