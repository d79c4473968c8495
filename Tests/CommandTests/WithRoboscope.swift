import Foundation
import InletCore
import InletLinux
import InletSandbox
import InletTestSupport
import SystemPackage

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
