internal import InletCore
package import SystemPackage

/// What a file is to Roboscope.
package enum RoboscopeRole: String, Sendable, CaseIterable {
    /// `model_glb_url` or `model_usdc_url` of its space.
    case model
    /// `scan_url` of its space.
    case scan
    /// `preview_url` of its space.
    case preview
    /// A list of markers for a session.
    case markers
    /// What the session of its folder shall be like: `session.yaml`.
    case session
    /// A file of a session: of an offloaded card, for example. Nothing is registered for it alone.
    case file

    /// What the file at `path` (below its root) is by its name; `nil` for `isInUnit` decides nothing.
    ///
    /// A picture beside a model of the same name is the model's preview when it travels with it; alone it is one only when
    /// it is called `preview`.
    package init(_ path: FilePath) {
        let name = FileName(path)
        let ending = name.plainExtension
        let stem = String(decoding: name.stem, as: UTF8.self).lowercased()
        switch ending {
        case "json" where stem == "markers", "yaml" where stem == "markers", "yml" where stem == "markers":
            self = .markers
        case "json" where stem == "session", "yaml" where stem == "session", "yml" where stem == "session":
            self = .session
        case _ where Self.scans.contains(ending) && Self.isBelowScans(path): self = .scan
        case _ where Self.models[ending] != nil: self = .model
        case _ where Self.pictures.contains(ending) && stem == "preview": self = .preview
        default: self = .file
        }
    }

    /// Which field of a space the URL of a model with this ending goes to.
    static let models = ["glb": "model_glb_url", "usdc": "model_usdc_url", "usdz": "model_usdc_url"]
    private static let scans: Set = ["usdc", "usdz", "obj", "ply"]
    static let pictures: Set = ["png", "jpg", "jpeg", "webp"]

    private static func isBelowScans(_ path: FilePath) -> Bool {
        path.removingLastComponent().components.contains { $0.string.lowercased() == "scans" }
    }

    /// Whether the file's bytes have to be in the storage first. Markers and session files are read here.
    package var needsStorage: Bool {
        switch self {
        case .model, .scan, .preview, .file: true
        case .markers, .session: false
        }
    }
}
