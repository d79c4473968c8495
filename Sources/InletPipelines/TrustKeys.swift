internal import InletCore
internal import InletTransfer
internal import SystemPackage

/// What a destination may say of its server's certificate.
extension Trust {
    static let caFileKey = KeySpec("ca_file", .path, "A PEM file of certificates to trust beside the system's.")

    /// For destinations of which all requests go to one server.
    static let keys = [
        KeySpec(
            "pin", .string,
            "sha256//BASE64 of the server's public key, for self-signed certificates; 'inlet check' prints it. Without a "
                + "ca_file the key alone counts: the certificate's authority, name and dates are not looked at."),
        caFileKey,
    ]

    /// - Throws: `SettingFault` where the pin is none.
    init(_ values: ConfigSection) throws(SettingFault) {
        self.init(caFile: values.string("ca_file").map { FilePath($0) })
        guard let text = values.string("pin") else { return }
        guard let pin = PublicKeyPin(text) else {
            throw SettingFault(
                key: "pin", message: "is not sha256// and the base64 of 32 bytes; 'inlet check' prints it")
        }
        self.pin = pin
    }
}

extension HTTPClient {
    /// The pin of the key that a server has now, as `pin:` takes it; nil without TLS.
    func serverPin(of url: HTTPURL) async throws(DeliveryError) -> String? {
        try await DeliveryError.onTransfer(await pin(of: url))?.text
    }
}
