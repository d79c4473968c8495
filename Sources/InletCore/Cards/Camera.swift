/// The camera of a file, as far as its metadata and its card's structure tell; without values where they tell nothing.
package struct Camera: Sendable, Hashable {
    /// In its usual spelling: `Nikon`, not `NIKON CORPORATION`.
    package let maker: String?
    /// As the file has it, without the maker: `EOS R5`.
    package let model: String?
    /// By the card's structure: `Sony XDCAM`.
    package let system: String?

    /// - Parameters:
    ///   - make: as in the metadata.
    ///   - model: as in the metadata.
    package init(make: String? = nil, model: String? = nil, system: CameraStructure? = nil) {
        let (make, model) = (Self.clean(make), Self.clean(model))
        let maker = make.map(Self.maker)
        self.maker = maker
        self.model = model.map { Self.model($0, without: maker) }
        self.system = system?.system
    }

    /// For `{camera}`: the model with its maker, else the system, else the maker; nil if unknown.
    package var name: String? {
        guard let model else { return system ?? maker }
        return maker.map { model.isEmpty ? $0 : "\($0) \(model)" } ?? model
    }

    /// The texts that a pattern can match.
    fileprivate var names: [String] { Set([name, maker, model, system].compactMap(\.self)).filter { !$0.isEmpty } }

    /// Cameras pad their names with blanks and NULs.
    private static func clean(_ text: String?) -> String? {
        guard let text else { return nil }
        let clean = KeySanitizer.withoutControls(String(text.prefix { $0 != "\0" })).trimmed
        return clean.isEmpty ? nil : clean
    }

    private static let makers = [
        "canon": "Canon", "nikon": "Nikon", "sony": "Sony", "fujifilm": "Fujifilm", "olympus": "Olympus",
        "om": "OM System", "panasonic": "Panasonic", "leica": "Leica", "gopro": "GoPro", "dji": "DJI",
        "apple": "Apple", "hasselblad": "Hasselblad", "ricoh": "Ricoh", "pentax": "Pentax", "sigma": "Sigma",
        "blackmagic": "Blackmagic", "arri": "ARRI", "red": "RED", "samsung": "Samsung", "google": "Google",
    ]

    /// The first word decides: `OLYMPUS IMAGING CORP.`
    private static func maker(_ make: String) -> String {
        makers[make.prefix { $0.isLetter || $0.isNumber }.lowercased()] ?? make
    }

    /// Many models begin with the maker: `Canon EOS R5`, `NIKON Z 6`.
    private static func model(_ model: String, without maker: String?) -> String {
        guard let maker, model.lowercased().hasPrefix(maker.lowercased()) else { return model }
        let rest = model.dropFirst(maker.count)
        return rest.first.map { $0.isLetter || $0.isNumber } ?? false ? model : String(rest).trimmed
    }
}

/// A pattern of `match: { camera: … }`: a camera's name, maker, model or system, in upper or lower case; `*` stands for
/// any text.
package struct CameraPattern: Sendable, Hashable {
    /// As written.
    package let text: String
    private let tokens: [GlobToken]

    package init(_ text: String) throws(PatternError) {
        guard !text.trimmed.isEmpty else {
            throw PatternError(message: "name a maker or a model, as in Sony or \"Canon EOS*\"")
        }
        self.text = text
        tokens = text.trimmed.lowercased().utf8.map { $0 == UInt8(ascii: "*") ? .anyBytes : .byte($0) }
    }

    package func matches(_ camera: Camera) -> Bool {
        camera.names.contains { GlobToken.match(tokens, Array($0.lowercased().utf8)[...]) }
    }
}
