import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// A credential that stands where an address belongs.
@Suite(.serialized) struct WrongKeyTests {
    private static let canary = "Kanari3nVogelKey77"

    private static let keys = [
        "type: r2, api: %, api_key: none", "type: r2, api: \"https://127.0.0.1:1\", api_key: none, public_url: %",
        "type: s3, endpoint: %, bucket: b, access_key: a, secret_key: none",
        "type: s3, endpoint: \"https://127.0.0.1:1\", bucket: b, access_key: a, secret_key: none, public_url: %",
        "type: s3, region: %, bucket: b, access_key: a, secret_key: none",
        "type: gighive, url: %, user: me, password: none",
        "type: vopi, url: %, results: p, auth: { api_key: none }",
        "type: vopi, url: \"https://127.0.0.1:1\", callback_url: %, results: p, auth: { api_key: none }",
        "type: roboscope, url: %, storage: store",
    ]

    /// As it came, and what people put around it.
    private static let values = [
        "${env:X}", "http://${env:X}/", "ftp://${env:X}", "https://u:${env:X}@h.example", "${env:X} ",
    ]

    private static func shows(_ text: String) -> Bool { text.lowercased().contains(canary.lowercased().prefix(8)) }

    @Test(arguments: keys)
    func `it is in no error of the start`(_ key: String) async throws {
        for value in Self.values {
            let place = try Place(destination: key.replacing("%", with: "\"\(value)\""))
            let result = try await place.inlet("check", environment: ["X": Self.canary])
            // Some of them are the name of a host, and cannot be told from one.
            if result.ending == .code(78) { #expect(result.errors.contains("inlet.yaml:"), "\(result.errors)") }
            if result.ending == .code(78) { #expect(!Self.shows(result.errors + result.output), "\(result.errors)") }
            #expect(value != "${env:X}" || result.ending == .code(78), "\(result)")
        }
    }

    @Test func `it is in no answer to a reload, and in no line of the log`() async throws {
        let place = try Place()
        let good = String(decoding: try place.content(place.configuration), as: UTF8.self)
        let agent = try await place.run(environment: ["X": Self.canary])
        for key in Self.keys {
            let text = key.replacing("%", with: "\"${env:X}\"")
            try place.configure(text: good.replacing("type: folder, path: library", with: text))
            let refused = try await place.inlet("reload", environment: ["X": Self.canary], code: 78)
            #expect(!Self.shows(refused.errors + refused.output), "\(refused)")
        }
        try await agent.stop()
        #expect(!Self.shows(agent.errors + agent.output))
    }
}
