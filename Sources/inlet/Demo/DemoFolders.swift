import Foundation
import InletConfig
import InletCore
import InletLinux
import InletPipelines
import InletSandbox
import SystemPackage

/// The demo's folders and its configuration.
struct DemoFolders: Sendable {
    let base: FilePath

    init(_ base: FilePath) { self.base = base }

    var drop: FilePath { base.appending("drop") }
    var store: FilePath { base.appending("store") }
    var library: FilePath { base.appending("library") }
    var archive: FilePath { base.appending("archive") }
    var gigHive: FilePath { base.appending("gighive") }
    var vopi: FilePath { base.appending("vopi") }
    /// VOPI's results, downloaded.
    var pictures: FilePath { base.appending("pictures") }
    private var login: FilePath { base.appending("vopi.token") }
    private var stateDirectory: FilePath { base.appending("state") }
    private var configuration: FilePath { base.appending("inlet.yaml") }

    /// Folders of the demo's routes.
    private static let folders = [
        "photos", "videos", "gigs", "audio", "documents", "models", "notes", "products", "spaces",
    ]

    /// A dropped file's path below the drop folder, for people.
    func name(of file: FilePath) -> String {
        var relative = file
        _ = relative.removePrefix(drop)
        return relative.display
    }

    func prepare() throws {
        do {
            for folder in Self.folders { try DurableFile.makeDirectories(drop.appending(folder), mode: 0o755) }
            for folder in [store, library, archive, gigHive, vopi, pictures] {
                try DurableFile.makeDirectories(folder, mode: 0o755)
            }
        } catch {
            throw ExitStatus.configuration.saying("\(error). Name another place with --dir DIR")
        }
    }

    /// Waits until all servers listen.
    func writeConfiguration(_ servers: DemoServers) async throws -> LoadedConfig {
        try DurableFile.write(Array((servers.signIn().reveal() + "\n").utf8), to: login, mode: 0o600)
        let text = try await placesText(servers) + Self.routesText
        try DurableFile.write(Array(text.utf8), to: configuration, mode: 0o600)
        return try ConfigOption.read(configuration)
    }

    private func placesText(_ servers: DemoServers) async throws -> String {
        func quote(_ path: FilePath) -> String { YAMLText.quoted(path.string) }
        let spiral = "http://127.0.0.1:\(try await servers.spiral.port())"
        let (s3, gigHive) = (try await servers.s3.port(), try await servers.gigHive.port())
        let (vopi, roboscope) = (try await servers.vopi.port(), try await servers.roboscope.port())
        return """
            # Written by 'inlet demo' at each start; copy it to begin a configuration of your own.
            state_dir: \(quote(stateDirectory))
            log: { level: info, output: \(quote(base.appending("inlet.log"))) }

            destinations:
              # The Spiral Storage API in its three generations, all served by the demo's own loopback server.
              spiral: { type: r2, api: "\(spiral)", dialect: v1, api_key: \(DemoServers.apiKey),
                        public_url: "\(spiral)/public" }
              older:  { type: r2, api: "\(spiral)", dialect: r2, public_url: "\(spiral)/public" }
              oldest: { type: r2, api: "\(spiral)", dialect: seed }
              # An S3 store, here on loopback: Inlet signs requests with its keys, with no service in between.
              archive: { type: s3, endpoint: "http://127.0.0.1:\(s3)", bucket: \(DemoServers.bucket),
                         access_key: \(DemoServers.accessKey), secret_key: \(DemoServers.secretKey) }
              # A GigHive server: small files go in one form, larger ones by tus.
              stage: { type: gighive, url: "http://127.0.0.1:\(gigHive)", user: uploader,
                       password: \(DemoServers.password), multipart_limit: 4MiB }
              # A VOPI server: product videos go up, the pictures that it makes of them come back.
              products: { type: vopi, url: "http://127.0.0.1:\(vopi)", poll: 1s,
                          auth: { refresh_token_file: \(quote(login)) }, results: \(quote(pictures)) }
              # Roboscope: models are stored at 'spiral' first, then registered in their spaces.
              spaces: { type: roboscope, url: "http://127.0.0.1:\(roboscope)/api/v1", storage: spiral }
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
          - name: gigs
            match: { path: "gigs/*/**" }
            key: "{dir}/{name}"
            to: [stage, archive]
            with:
              label: "{stem}"
              event_date: "{captured:yyyy-MM-dd@UTC}"
              org_name: "{folder[2]}"
              event_type: band
              keywords: "demo"
          - name: documents
            match: { path: "documents/**" }
            validate: { extensions: [pdf, txt] }
            key: "{category}/{sha256:12}_{name}"
            to: older
            on_failure: quarantine
          - name: models
            match: { path: "models/**" }
            to: oldest
          - name: products
            match: { path: "products/**", extensions: [mp4, m4v, mov, webm] }
            to: products
            with: { commercial_versions: "transparent,solid" }
          - name: spaces
            match: { path: "spaces/*/**", extensions: [glb] }
            key: "models/{folder[2]}/{name}"
            to: spaces
            with: { space: "{folder[2]}" }
            sidecars: { extensions: [png], wait: 2s }
          - name: others
            to: spiral
            key: "{dir}/{stem}_{seq}.{ext}"

        """
}
