package import InletTransfer

/// Presigned links to what a job made: the answer to `GET /jobs/:id/download-urls`. Short-lived; nothing is paged.
package struct VOPIDownloads: Sendable {
    package struct Frame: Sendable {
        /// Not unique.
        package var frameID: String
        package var link: HTTPURL
    }

    package var expiresIn: Duration
    package var frames: [Frame]
    /// Variant, then version.
    package var images: [String: [String: HTTPURL]]
    /// Kept as it is: transcript, product, platforms.
    package var productMetadata: VOPIValue?
    /// Whether the answer says what there is of it, if only that there is none.
    var saysMetadata: Bool
    /// Links that were not taken: their host or scheme is refused, with the reason.
    package var refused: [String]

    /// nil when the answer has neither frames nor images nor a job's id.
    init?(_ value: VOPIValue, asked: Duration, rules: URLRules) {
        guard value["frames"].isList || value["commercialImages"].isObject || value["jobId"].text != nil else {
            return nil
        }
        var refused: [String] = []
        func link(_ text: String) -> HTTPURL? {
            do throws(TransferError) {
                return try HTTPURL(text, rules: rules)
            } catch {
                refused.append(error.reason)
                return nil
            }
        }
        var frames: [Frame] = []
        for frame in value["frames"].list {
            guard let url = frame["downloadUrl"].text.flatMap({ link($0) }) else { continue }
            frames.append(Frame(frameID: frame["frameId"].text ?? "frame", link: url))
        }
        var images: [String: [String: HTTPURL]] = [:]
        for (variant, versions) in VOPIValue.links(value["commercialImages"]) {
            images[variant] = versions.compactMapValues { link($0) }
        }
        self.frames = frames
        self.images = images
        self.refused = refused
        expiresIn = value["expiresIn"].number.map { .seconds(max($0, 0)) } ?? asked
        productMetadata = value["productMetadata"].objectIfSet
        saysMetadata = value.members.keys.contains("productMetadata")
    }

    /// Links of both kinds.
    package var count: Int { frames.count + images.values.reduce(0) { $0 + $1.count } }
}

/// A frame of a video that the server looked at.
package struct VOPIFrame: Sendable, Equatable {
    package var id: String?
    package var frameID: String
    /// Seconds into the video.
    package var timestamp: Double?
    /// Of the private bucket; nil where the frame was not kept.
    package var url: String?
    package var productID: String?
    package var variantID: String?
    package var angleEstimate: String?
    package var variantDescription: String?
    package var obstructions: VOPIValue?
    package var backgroundRecommendations: VOPIValue?
    package var isFinalSelection: Bool?
    package var raw: VOPIValue

    /// nil for what is no object.
    package init?(_ value: VOPIValue) {
        guard value.isObject else { return nil }
        id = value["id"].text
        frameID = value["frameId"].text ?? value["id"].text ?? ""
        timestamp = value["timestamp"].number
        url = value["s3Url"].text
        productID = value["productId"].text
        variantID = value["variantId"].text
        angleEstimate = value["angleEstimate"].text
        variantDescription = value["variantDescription"].text
        obstructions = value["obstructions"].unlessEmpty
        backgroundRecommendations = value["backgroundRecommendations"].unlessEmpty
        isFinalSelection = value["isFinalSelection"].boolean
        raw = value
    }

    /// What stands in its way, in words: `hand, glare: a hand at the left; removable`. nil where the server says nothing.
    package var obstructionText: String? {
        guard let obstructions else { return nil }
        guard obstructions["has_obstruction"].boolean != false else { return "none" }
        let types = obstructions["obstruction_types"].list.compactMap(\.text).joined(separator: ", ")
        let words = [types, obstructions["obstruction_description"].text ?? ""].filter { !$0.isEmpty }
        let isRemovable = obstructions["removable_by_ai"].boolean == true
        return (words.isEmpty ? "yes" : words.joined(separator: ": ")) + (isRemovable ? "; removable" : "")
    }

    /// What may stand behind it, for each kind of picture: `solid: white (#FFFFFF); real: a kitchen; creative: on a cloud`.
    /// nil where the server recommends nothing.
    package var backgroundText: String? {
        guard let recommended = backgroundRecommendations else { return nil }
        let (name, color) = (recommended["solid_color_name"].text, recommended["solid_color"].text)
        let solid = name.map { name in color.map { "\(name) (\($0))" } ?? name } ?? color
        let kinds = [
            ("solid", solid), ("real", recommended["real_life_setting"].text),
            ("creative", recommended["creative_shot"].text),
        ]
        let texts = kinds.compactMap { kind, text in text.map { "\(kind): \($0)" } }
        return texts.isEmpty ? nil : texts.joined(separator: "; ")
    }
}

/// A picture that was made of a frame.
package struct VOPIImage: Sendable, Equatable {
    package var id: String?
    /// The id of the frame's row, not its name.
    package var frameID: String?
    package var version: String
    /// Of the private bucket.
    package var url: String?
    package var succeeded: Bool?
    package var error: String?
    package var raw: VOPIValue

    /// nil for what is no object.
    package init?(_ value: VOPIValue) {
        guard value.isObject else { return nil }
        id = value["id"].text
        frameID = value["frameId"].text
        version = value["version"].text ?? ""
        url = value["s3Url"].text
        succeeded = value["success"].boolean
        error = value["error"].text
        raw = value
    }
}

/// What the server measured of the video.
package struct VOPIVideo: Sendable, Equatable {
    /// Seconds.
    package var duration: Double?
    package var width: Int?
    package var height: Int?
    package var fps: Double?
    package var codec: String?
    package var raw: VOPIValue

    /// nil for what is no object.
    package init?(_ value: VOPIValue) {
        guard value.isObject else { return nil }
        duration = value["duration"].number
        width = value["width"].integer
        height = value["height"].integer
        fps = value["fps"].number
        codec = value["codec"].text
        raw = value
    }
}

/// What the account can still pay for.
package struct VOPIBalance: Sendable, Equatable {
    package var credits: Double
    package var transactions: [VOPIValue]

    /// nil where no number stands.
    package init?(_ value: VOPIValue) {
        guard let credits = value["balance"].number else { return nil }
        self.credits = credits
        transactions = value["transactions"].list
    }
}

/// `GET /ready`: whether the server's own parts are there. A 503 says so too.
package struct VOPIReadiness: Sendable, Equatable {
    package var isReady: Bool
    /// Part, then `ok` or `error`.
    package var checks: [String: String]
}
