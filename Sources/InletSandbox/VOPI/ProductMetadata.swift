import InletCore

/// What the analysis of a video's sound gives: the product, and how three shops want it told.
enum ProductMetadata {
    static func of(_ video: Digest, now: WallTime) -> SandboxJSON {
        let name = "Product \(video.hex.prefix(8))"
        let text = "Made by the sandbox from the video \(video.hex)."
        return [
            "transcript": .string("This is \(name)."),
            "product": [
                "title": .string(name), "description": .string(text),
                "bulletPoints": [.string("Video \(video.hex.prefix(12))")],
                "confidence": ["overall": 85, "title": 90, "description": .number(80.5)],
                "extractedFromAudio": true,
            ],
            "platforms": [
                "shopify": ["title": .string(name), "body_html": .string("<p>\(text)</p>"), "tags": ["sandbox"]],
                "amazon": ["item_name": .string(name), "bullet_point": [.string(text)]],
                "ebay": ["title": .string(String(name.prefix(80))), "description": .string(text)],
            ],
            "extractedAt": .string(now.rfc3339), "pipelineVersion": "2.0.0",
        ]
    }
}
