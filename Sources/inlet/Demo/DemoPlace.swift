import Foundation
import InletConfig
import InletCore
import InletLinux
import InletPipelines
import SystemPackage

/// The demo's folders and its configuration.
struct DemoPlace: Sendable {
    let base: FilePath
    /// The sandbox is on loopback and takes only this; it protects nothing.
    static let apiKey = "demo-key"

    init(_ base: FilePath) { self.base = base }

    var drop: FilePath { base.appending("drop") }
    var store: FilePath { base.appending("store") }
    var library: FilePath { base.appending("library") }
    private var stateDirectory: FilePath { base.appending("state") }
    private var configuration: FilePath { base.appending("inlet.yaml") }

    /// Folders of the demo's routes.
    private static let folders = ["photos", "videos", "audio", "documents", "models", "notes"]

    func prepare() throws {
        do {
            for folder in Self.folders { try DurableFile.makeDirectories(drop.appending(folder), mode: 0o755) }
            for folder in [store, library] { try DurableFile.makeDirectories(folder, mode: 0o755) }
        } catch {
            Console.printError("inlet: \(error). Name another place with --dir DIR")
            throw ExitStatus.configuration
        }
    }

    func writeConfiguration(port: Int) throws -> LoadedConfig {
        try DurableFile.write(Array(text(port: port).utf8), to: configuration, mode: 0o600)
        let environment = ProcessInfo.processInfo.environment
        return try ConfigFile.load(
            configuration, types: PipelineFactory.types, environment: environment,
            defaults: ConfigOption.defaults(environment))
    }

    private func quote(_ path: FilePath) -> String {
        "\"" + path.string.replacingOccurrences(of: "\\", with: "\\\\").replacingOccurrences(of: "\"", with: "\\\"")
            + "\""
    }

    private func text(port: Int) -> String { placesText(port: port) + Self.routesText }

    private func placesText(port: Int) -> String {
        """
        # Written by 'inlet demo' at each start; copy it to begin a configuration of your own.
        state_dir: \(quote(stateDirectory))
        log: { level: info, output: \(quote(base.appending("inlet.log"))) }

        destinations:
          # The Spiral Storage API in its three generations, all served by the demo's own loopback server.
          spiral: { type: r2, api: "http://127.0.0.1:\(port)", dialect: v1, api_key: \(Self.apiKey),
                    public_url: "http://127.0.0.1:\(port)/public" }
          older:  { type: r2, api: "http://127.0.0.1:\(port)", dialect: r2, public_url: "http://127.0.0.1:\(port)/public" }
          oldest: { type: r2, api: "http://127.0.0.1:\(port)", dialect: seed }
          # A plain folder: copied, read back from the disk, compared.
          library: { type: folder, path: \(quote(library)) }

        watch:
          - path: \(quote(drop))
            settle: 1s

        """
    }

    private static let routesText = """

        # The first route that matches takes the file.
        routes:
          - name: photos
            match: { path: "photos/**" }
            validate: { max_size: 8MiB, extensions: [jpg, jpeg, png, tif] }
            key: "images/{epoch_ms}_{name}"
            to: [spiral, library]
          - name: videos
            match: { path: "videos/**" }
            to: spiral
            owner: demo
          - name: documents
            match: { path: "documents/**" }
            validate: { extensions: [pdf, txt] }
            key: "{category}/{sha256:12}_{name}"
            to: older
            on_failure: quarantine
          - name: models
            match: { path: "models/**" }
            to: oldest
          - name: others
            to: spiral
            key: "{dir}/{stem}_{seq}.{ext}"

        """
}
