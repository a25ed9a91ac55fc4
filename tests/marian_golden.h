/* marian_golden.h: made by marian_golden.py. */
static const double marian_self[] = {-2.480267083, -3.147434080, -3.179921895, -2.817245871};
static const double marian_ssru[] = {-1.845148438, -2.779814014, -2.733252723, -3.116163212};
static const double marian_pre[] = {-2.760405006, -2.601137686, -3.220964147, -3.549145326};
static const double marian_int8[] = {-1.844112035, -2.773024812, -2.740967205, -3.118664660};
