import Foundation
import InletConfig
import InletCore
import SystemPackage
import Testing

/// Files that must load, and files that must not, with the exact text beside each.
struct FixtureTests {
    static let good = files(in: "good")
    static let bad = files(in: "bad")

    @Test(arguments: bad)
    func `a bad file is refused with exactly these errors`(name: String) throws {
        let bytes = try Self.content("bad/\(name).yaml")
        let expected = String(decoding: try Self.content("bad/\(name).errors"), as: UTF8.self)
        #expect(complaints(bytes, file: FilePath("\(name).yaml")) + "\n" == expected)
    }

    @Test(arguments: good)
    func `a good file shows exactly this effective configuration, which loads again and shows the same`(
        name: String
    ) throws {
        let config = try parse(String(decoding: try Self.content("good/\(name).yaml"), as: UTF8.self))
        let expected = String(decoding: try Self.content("good/\(name).shown"), as: UTF8.self)
        let shown = ConfigPrinter.show(config, types: standInTypes)
        #expect(shown == expected)
        #expect(ConfigPrinter.show(try parse(shown), types: standInTypes) == shown)
    }

    @Test func `there are fixtures of both kinds`() {
        #expect(Self.good.count >= 3)
        #expect(Self.bad.count >= 20)
    }

    private static func files(in folder: String) -> [String] {
        let path = Bundle.module.bundleURL.appendingPathComponent("Fixtures/\(folder)").path
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        return names.filter { $0.hasSuffix(".yaml") }.map { String($0.dropLast(5)) }.sorted()
    }

    static func content(_ name: String) throws -> [UInt8] {
        let base = Bundle.module.bundleURL.appendingPathComponent("Fixtures")
        return Array(try Data(contentsOf: base.appendingPathComponent(name)))
    }
}

/// What stands in the repository's `config/` folder works as it stands.
struct ConfigFolderTests {
    private static let folder = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("config")

    private static let files = ["", "examples/"].flatMap { prefix in
        let names = try? FileManager.default.contentsOfDirectory(atPath: folder.appendingPathComponent(prefix).path)
        return (names ?? []).filter { $0.hasSuffix(".yaml") }.sorted().map { prefix + $0 }
    }

    @Test(arguments: files)
    func `a file of config loads, and could run`(name: String) throws {
        let text = try String(contentsOf: Self.folder.appendingPathComponent(name), encoding: .utf8)
        let settings = try parse(text, file: FilePath(name)).settings
        #expect(!settings.watch.isEmpty && !settings.routes.isEmpty && !settings.destinations.isEmpty)
    }

    @Test func `the annotated file and three examples are there`() {
        #expect(Self.files.contains("inlet.yaml"))
        #expect(Self.files.count >= 4)
    }

    @Test func `the annotated file names every key`() throws {
        let text = try String(contentsOf: Self.folder.appendingPathComponent("inlet.yaml"), encoding: .utf8)
        func names(_ keys: [KeySpec]) -> [String] {
            keys.flatMap { key in
                switch key.kind {
                case .section(let inner), .brief(_, let inner), .list(.section(let inner)): [key.name] + names(inner)
                default: [key.name]
                }
            }
        }
        for name in names(ConfigKeys.specs + standInTypes.flatMap(\.keys)) {
            #expect(text.contains("\(name):"), "\(name)")
        }
    }

    /// Destinations are left out: their tables belong to the pipelines, which this target does not see.
    @Test func `the schema's file is what the tables generate`() throws {
        let file = try Self.schema(try Data(contentsOf: Self.folder.appendingPathComponent("inlet.schema.json")))
        let generated = try Self.schema(Data(ConfigSchema.json(types: standInTypes).utf8))
        #expect(file == generated)
    }

    @Test func `the schema knows every destination type`() throws {
        let text = ConfigSchema.json(types: standInTypes)
        for type in standInTypes { #expect(text.contains("\"enum\": [\"\(type.name)\"]")) }
        #expect(text == ConfigSchema.json(types: standInTypes))
    }

    private static func schema(_ data: Data) throws -> NSDictionary {
        var root = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        var properties = try #require(root["properties"] as? [String: Any])
        var destinations = try #require(properties["destinations"] as? [String: Any])
        destinations["additionalProperties"] = nil
        properties["destinations"] = destinations
        root["properties"] = properties
        return root as NSDictionary
    }
}
