import Foundation
import InletConfig
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
    func `a good file shows exactly this effective configuration`(name: String) throws {
        let config = try parse(String(decoding: try Self.content("good/\(name).yaml"), as: UTF8.self))
        let expected = String(decoding: try Self.content("good/\(name).shown"), as: UTF8.self)
        #expect(ConfigPrinter.show(config, types: standInTypes) == expected)
    }

    @Test(arguments: good)
    func `what is shown loads again and shows the same`(name: String) throws {
        let config = try parse(String(decoding: try Self.content("good/\(name).yaml"), as: UTF8.self))
        let shown = ConfigPrinter.show(config, types: standInTypes)
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
