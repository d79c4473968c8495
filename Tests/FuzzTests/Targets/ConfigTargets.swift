import InletConfig
import InletCore
import InletPipelines
import SystemPackage

extension FuzzTarget {
    /// Configurations, and the notes that whoever drops files lays beside them.
    static let config = [
        FuzzTarget("settings", longest: 8192) { bytes throws(Broken) in try readSettings(Array(bytes)) },
        FuzzTarget("sidecar") { bytes throws(Broken) in try readSidecar(Array(bytes)) },
    ]

    private static let secret = "canary-4711"

    /// Nothing is read from the machine: `${file:…}` leads into a folder that is not there.
    private static let defaults = ConfigDefaults(
        stateDirectory: "/nowhere/state", home: "/nowhere/home", workingDirectory: "/nowhere/work")

    private static func readSettings(_ bytes: [UInt8]) throws(Broken) {
        let text = String(decoding: bytes, as: UTF8.self)
        // What reads a file of this machine tells about the machine, not about the reader; and a secret that stands in the text
        // itself is hidden only where the text can be understood.
        if text.contains("file:") || text.contains(secret) { return }
        let config: LoadedConfig
        do throws(ConfigErrors) {
            config = try ConfigFile.parse(
                bytes: bytes, file: "a.yaml", types: DestinationKinds.types, environment: ["KEY": secret],
                defaults: defaults)
        } catch {
            try promise(!error.list.isEmpty, "refused without a reason")
            for one in error.list {
                try promise(one.line >= 1 && one.column >= 1 && one.line <= bytes.count + 1, "no place: \(one)")
                try promise(!"\(one)".contains(secret), "a secret in \(one)")
                try isHarmless("\(one.message)")
            }
            return
        }
        let shown = ConfigPrinter.show(config, types: DestinationKinds.types)
        try promise(!shown.contains(secret), "a secret in what is shown")
        // What was printed can be read again.
        do throws(ConfigErrors) {
            _ = try ConfigFile.shown(shown, file: "a.yaml", types: DestinationKinds.types, defaults: defaults)
        } catch {
            throw Broken("what was shown is not read: \(error)")
        }
    }

    private static func readSidecar(_ bytes: [UInt8]) throws(Broken) {
        var sidecar: Sidecar?
        do throws(ConfigErrors) {
            sidecar = try SidecarMetadata.parse(bytes, file: "a.mp4.yaml")
        } catch {
            try promise(!error.list.isEmpty, "refused without a reason")
        }
        for (name, value) in sidecar?.fields ?? [:] {
            try promise(!name.isEmpty && name.utf8.count <= 64, "a name of \(name.utf8.count) bytes")
            try promise(value.utf8.count <= bytes.count, "more came out than went in")
        }
        _ = try? SidecarMetadata.unitLabels(bytes, file: "a", isMarker: true)
        if let json = try? YAMLAsJSON.convert(bytes, file: "a.yaml") {
            try promise(VOPIValue(json) != nil, "what was made of YAML is no JSON")
        }
    }
}
