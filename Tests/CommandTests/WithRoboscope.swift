import Foundation
import InletCore
import InletLinux
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// Runs `body` on a machine with a Roboscope sandbox as destination `spaces`, whose files go to a Spiral sandbox.
///
/// - Parameters:
///   - route: more keys of the only route.
///   - clock: what the Roboscope sandbox's locks go by.
func withRoboscope(
    route: String = "", clock: @escaping @Sendable () -> WallTime = { .now },
    _ body: @Sendable @escaping (Place, RoboscopeSandbox, SpiralSandbox) async throws -> Void
) async throws {
    let place = try Place()
    let sandbox = RoboscopeSandbox(token: Secret("space-token-5521"), clock: clock)
    try await withSandbox(place.folder.path.appending("store")) { spiral, port in
        try await whileServing({ try await sandbox.run() }) {
            try place.configure(
                text: """
                    state_dir: state
                    log: { level: debug }
                    destinations:
                      store: { type: r2, api: "http://127.0.0.1:\(port)",
                               public_url: "http://127.0.0.1:\(port)/public",
                               api_key: "\(ConfigText.apiKey)" }
                      spaces: { type: roboscope, url: "http://127.0.0.1:\(try await sandbox.port())/api/v1",
                                storage: store, token: space-token-5521 }
                    watch:
                      - { path: drop, settle: 0s }
                    routes:
                      - { name: all, to: spaces, key: "models/{dir}/{name}"\(route.isEmpty ? "" : ", " + route) }

                    """)
            try await body(place, sandbox, spiral)
        }
    }
}

extension Place {
    /// Puts a list of so many markers into the folder of the space `atrium`.
    func putMarkers(_ count: Int) throws {
        let list = (0..<count).map { #"{"p1":[\#($0),0,0],"p2":[1,0,0],"p3":[1,1,0],"p4":[0,1,0]}"# }
        try put("atrium/markers.json", Data("[\(list.joined(separator: ","))]".utf8))
    }
}

extension RoboscopeSandbox {
    /// Expects so many markers, each with a stamp of its own.
    func expectMarkers(_ count: Int, sourceLocation: SourceLocation = #_sourceLocation) {
        let stamps = markers().compactMap { $0.customProps["ingest_id"]?.text }
        #expect(
            stamps.count == count && Set(stamps).count == count && markers().count == count,
            sourceLocation: sourceLocation)
    }
}
